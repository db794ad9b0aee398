/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Money as a whole number of 10^-15 of a currency unit.  Text goes in and
 * comes out digit by digit; no step here divides except to print.  It refuses
 * to guess: what does not fit is an error and never a wrapped, clamped or
 * rounded value.  All arithmetic that could overflow is done on unsigned
 * magnitudes, which neither trap nor need a compiler's run-time library
 * (clang calls __muloti4 for a checked signed product, libgcc has none).
 */
#include "decimal.h"

typedef unsigned __int128 magnitude_t;

#define MAGNITUDE_MAX (~(magnitude_t)0)
#define POSITIVE_MAX (MAGNITUDE_MAX >> 1) /* 2^127 - 1 */
#define EXPONENT_CAP 1000000000

static magnitude_t magnitude(aigw_money_t m)
{
    return m < 0 ? (magnitude_t)0 - (magnitude_t)m : (magnitude_t)m;
}

static aigw_rc_t with_sign(magnitude_t u, int negative, aigw_money_t *out)
{
    if (u > POSITIVE_MAX + (negative ? 1 : 0)) {
        return AIGW_TOO_BIG;
    }
    *out = (aigw_money_t)(negative ? (magnitude_t)0 - u : u);
    return AIGW_OK;
}

static int append_digit(magnitude_t *u, unsigned digit)
{
    if (*u > (MAGNITUDE_MAX - digit) / 10) {
        return 0;
    }
    *u = *u * 10 + digit;
    return 1;
}

/* -- reading ------------------------------------------------------------- */

/* The significant digits seen so far, and the zeros after the last one that
 * is not zero: they count only when another digit follows, so that a long
 * tail of zeros is not taken for precision. */
typedef struct {
    magnitude_t value;
    apr_int64_t zeros;
    apr_int64_t after_point;
    int too_big;
} digits_t;

static void take_digit(digits_t *d, unsigned digit)
{
    if (digit == 0) {
        d->zeros += d->value != 0;
        return;
    }
    while (d->value && d->zeros > 0 && !d->too_big) {
        d->too_big = !append_digit(&d->value, 0);
        d->zeros--;
    }
    d->too_big = d->too_big || !append_digit(&d->value, digit);
}

static int is_digit(aigw_slice_t s, apr_size_t i)
{
    return i < s.n && s.p[i] >= '0' && s.p[i] <= '9';
}

static apr_size_t read_mantissa(aigw_slice_t s, apr_size_t i, digits_t *d)
{
    if (!is_digit(s, i) || (s.p[i] == '0' && is_digit(s, i + 1))) {
        return 0;
    }
    for (; is_digit(s, i); i++) {
        take_digit(d, (unsigned)(s.p[i] - '0'));
    }
    if (i == s.n || s.p[i] != '.') {
        return i;
    }
    if (!is_digit(s, ++i)) {
        return 0;
    }
    for (; is_digit(s, i); i++) {
        take_digit(d, (unsigned)(s.p[i] - '0'));
        d->after_point++;
    }
    return i;
}

static apr_size_t read_exponent(aigw_slice_t s, apr_size_t i,
                                apr_int64_t *exponent)
{
    int negative = 0;

    *exponent = 0;
    if (i == s.n || (s.p[i] != 'e' && s.p[i] != 'E')) {
        return i;
    }
    i++;
    if (i < s.n && (s.p[i] == '-' || s.p[i] == '+')) {
        negative = s.p[i++] == '-';
    }
    if (!is_digit(s, i)) {
        return 0;
    }
    for (; is_digit(s, i); i++) {
        if (*exponent < EXPONENT_CAP) {
            *exponent = *exponent * 10 + (s.p[i] - '0');
        }
    }
    *exponent = negative ? -*exponent : *exponent;
    return i;
}

static aigw_rc_t scale_up(magnitude_t *u, apr_int64_t places)
{
    if (places < 0) {
        return AIGW_TOO_BIG; /* a digit below 10^-15 that is not zero */
    }
    while (places-- > 0) {
        if (!append_digit(u, 0)) {
            return AIGW_TOO_BIG;
        }
    }
    return AIGW_OK;
}

aigw_rc_t aigw_money_parse(aigw_slice_t text, aigw_money_t *out)
{
    digits_t d = {0, 0, 0, 0};
    apr_int64_t exponent;
    apr_size_t i = 0;
    int negative = text.n > 0 && text.p[0] == '-';
    aigw_rc_t rc;

    i = read_mantissa(text, (apr_size_t)negative, &d);
    if (i == 0) {
        return AIGW_MALFORMED;
    }
    i = read_exponent(text, i, &exponent);
    if (i == 0 || i != text.n) {
        return AIGW_MALFORMED;
    }
    if (d.too_big) {
        return AIGW_TOO_BIG;
    }
    if (d.value == 0) {
        *out = 0;
        return AIGW_OK;
    }
    rc = scale_up(&d.value,
                  exponent - d.after_point + d.zeros + AIGW_MONEY_SCALE);
    return rc == AIGW_OK ? with_sign(d.value, negative, out) : rc;
}

/* -- arithmetic ---------------------------------------------------------- */

aigw_rc_t aigw_money_add(aigw_money_t a, aigw_money_t b, aigw_money_t *sum)
{
    magnitude_t u = (magnitude_t)a + (magnitude_t)b;
    aigw_money_t wrapped = (aigw_money_t)u;

    if ((a < 0) == (b < 0) && (wrapped < 0) != (a < 0)) {
        return AIGW_TOO_BIG;
    }
    *sum = wrapped;
    return AIGW_OK;
}

static aigw_rc_t multiply(magnitude_t a, apr_uint64_t n, magnitude_t *out)
{
    magnitude_t high = (a >> 64) * n;
    magnitude_t low = (a & APR_UINT64_MAX) * n;

    if (high > APR_UINT64_MAX || (high << 64) > MAGNITUDE_MAX - low) {
        return AIGW_TOO_BIG;
    }
    *out = (high << 64) + low;
    return AIGW_OK;
}

aigw_rc_t aigw_money_mul(aigw_money_t a, apr_int64_t n, aigw_money_t *out)
{
    apr_uint64_t times =
        n < 0 ? (apr_uint64_t)0 - (apr_uint64_t)n : (apr_uint64_t)n;
    magnitude_t u;
    aigw_rc_t rc = multiply(magnitude(a), times, &u);

    return rc == AIGW_OK ? with_sign(u, (a < 0) != (n < 0), out) : rc;
}

/* -- printing ------------------------------------------------------------ */

static magnitude_t power_of_ten(int n)
{
    magnitude_t u = 1;

    while (n-- > 0) {
        u *= 10;
    }
    return u;
}

/* Digits of u with at least `width` of them, no NUL. */
static apr_size_t put_digits(magnitude_t u, int width, char *buf)
{
    char back[40];
    apr_size_t n = 0, i;

    while (u || (int)n < width) {
        back[n++] = (char)('0' + (int)(u % 10));
        u /= 10;
    }
    for (i = 0; i < n; i++) {
        buf[i] = back[n - 1 - i];
    }
    return n;
}

/* u counts units of 10^-digits. */
static apr_size_t put_fixed(magnitude_t u, int negative, int digits, char *buf)
{
    magnitude_t one = power_of_ten(digits);
    apr_size_t n = 0;

    if (negative && u) { /* a rounded "-0.00" says nothing that is true */
        buf[n++] = '-';
    }
    n += put_digits(u / one, 1, buf + n);
    if (digits) {
        buf[n++] = '.';
        n += put_digits(u % one, digits, buf + n);
    }
    buf[n] = '\0';
    return n;
}

apr_size_t aigw_money_text(aigw_money_t m, char *buf)
{
    magnitude_t u = magnitude(m);
    int digits = AIGW_MONEY_SCALE;

    while (digits > 0 && u % 10 == 0) {
        u /= 10;
        digits--;
    }
    return put_fixed(u, m < 0, digits, buf);
}

static int rounds_away(magnitude_t kept, magnitude_t rest, magnitude_t unit,
                       aigw_round_t mode)
{
    if (mode == AIGW_ROUND_TRUNC || rest * 2 < unit) {
        return 0;
    }
    return rest * 2 > unit || mode == AIGW_ROUND_HALF_UP || kept % 2;
}

apr_size_t aigw_money_round_text(aigw_money_t m, int digits, aigw_round_t mode,
                                 char *buf)
{
    magnitude_t unit, kept, rest;

    digits = digits < 0 ? 0 : digits;
    digits = digits > AIGW_MONEY_SCALE ? AIGW_MONEY_SCALE : digits;
    unit = power_of_ten(AIGW_MONEY_SCALE - digits);
    kept = magnitude(m) / unit;
    rest = magnitude(m) % unit;
    if (unit > 1) {
        kept += rounds_away(kept, rest, unit, mode) ? 1 : 0;
    }
    return put_fixed(kept, m < 0, digits, buf);
}
