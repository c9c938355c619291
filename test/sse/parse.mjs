// Reads streams of server-sent events: a JSON list of lists of base64 pieces comes in, a list of lists of events goes out.
import { readFileSync } from "node:fs";
import { createParser } from "eventsource-parser";

const streams = JSON.parse(readFileSync(0, "utf8"));
const read = streams.map((pieces) => {
  const events = [];
  const decoder = new TextDecoder();
  const parser = createParser({ onEvent: (e) => events.push({ name: e.event ?? "", id: e.id ?? "", data: e.data }) });
  for (const piece of pieces) {
    const text = decoder.decode(Buffer.from(piece, "base64"), { stream: true });
    if (text !== "") parser.feed(text);
  }
  return events;
});
process.stdout.write(JSON.stringify(read));
