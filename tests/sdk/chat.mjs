// SPDX-License-Identifier: Apache-2.0
// One call of the official SDK through the gateway: baseURL and apiKey are
// all that differs from a call to the provider. Prints one JSON object.
import OpenAI from "openai";

const [baseURL, apiKey, what, fields] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const request = {
  model: "gpt-4.1",
  messages: [{ role: "user", content: "Say hello" }],
  ...JSON.parse(fields ?? "{}"),
};

async function whole() {
  const answer = await client.chat.completions.create(request);
  return {
    text: answer.choices[0].message.content,
    finish: answer.choices[0].finish_reason,
    usage: answer.usage,
  };
}

async function stream() {
  const started = performance.now();
  const out = { text: "", arrivals: [], usage: null, finish: null };
  const parts = await client.chat.completions.create({
    ...request, stream: true });
  for await (const part of parts) {
    const choice = part.choices[0];
    if (choice?.delta?.content) {
      out.text += choice.delta.content;
      out.arrivals.push(performance.now() - started);
    }
    out.finish = choice?.finish_reason ?? out.finish;
    out.usage = part.usage ?? out.usage;
  }
  return out;
}

async function leave() {
  const parts = await client.chat.completions.create({
    ...request, stream: true });
  let seen = 0;
  for await (const part of parts) {
    if (part.choices[0]?.delta?.content && ++seen === 2) {
      break; // the SDK aborts the request
    }
  }
  return { seen };
}

async function models() {
  const ids = [];
  for await (const model of client.models.list()) {
    ids.push(model.id);
  }
  return { ids };
}

try {
  const result = await { whole, stream, leave, models }[what]();
  console.log(JSON.stringify(result));
} catch (error) {
  console.log(JSON.stringify({
    error: error.constructor.name,
    status: error.status,
    code: error.code,
    type: error.type,
    message: error.message,
  }));
}
