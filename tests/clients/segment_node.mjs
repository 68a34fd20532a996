// Sends all six calls with Segment's SDK for Node: segment_node.mjs HOST KEY
import { createRequire } from "node:module";

const require = createRequire(`${process.cwd()}/`);
const { Analytics } = require("@segment/analytics-node");
const [host, writeKey] = process.argv.slice(2);
const client = new Analytics({ writeKey, host });
client.on("error", (error) => { console.error(error); process.exitCode = 1; });
const timestamp = new Date("2026-11-01T12:30:00Z");
client.identify({ userId: "u1", traits: { email: "a@b.c", age: 3 }, timestamp });
client.track({
  userId: "u1",
  event: "Checkout Completed",
  properties: { "Total Price": 12.5, items: [{ sku: "a" }], nested: { a: { b: 1 } } },
});
client.page({ userId: "u1", category: "Docs", name: "Home", properties: { url: "http://x" } });
client.screen({ userId: "u1", category: "Main", name: "Start", properties: { build: 7 } });
client.group({ userId: "u1", groupId: "g1", traits: { plan: "team" } });
client.alias({ userId: "u1", previousId: "u0" });
await client.closeAndFlush();
