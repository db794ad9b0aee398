# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Completion for aigw-calc in bash. Commands and options are read from the
# program's own help, so that they can't go stale.

_aigw_calc() {
    local program=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} words
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        words="$("$program" --help 2>/dev/null |
            sed -n '/^Commands:/,/^  aigw-calc/s/^  \([a-z]\{1,\}\)\( .*\)\{0,1\}$/\1/p')
            --help --version"
    elif [[ $word == -* ]]; then
        words=$("$program" "${COMP_WORDS[1]}" --help 2>/dev/null |
            grep -o '^  --[a-z-]*=\{0,1\}')
    else
        return
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
    if [[ ${COMPREPLY[0]} == *= ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -o default -F _aigw_calc aigw-calc
