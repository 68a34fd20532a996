// The same with RudderStack's SDK for Node: rudder_node.mjs HOST KEY plain|gzip
import { createRequire } from "node:module";

const require = createRequire(`${process.cwd()}/`);
const module = require("@rudderstack/rudder-sdk-node");
const RudderAnalytics = module.default ?? module;
const [host, writeKey, encoding] = process.argv.slice(2);
const client = new RudderAnalytics(writeKey, { dataPlaneUrl: host, gzip: encoding === "gzip", flushAt: 1 });
const timestamp = new Date("2026-11-01T12:30:00Z");
const done = (call, message) =>
  new Promise((resolve, reject) => client[call](message, (error) => (error ? reject(error) : resolve())));
await done("identify", { userId: "u1", traits: { email: "a@b.c", age: 3 }, timestamp });
await done("track", {
  userId: "u1",
  event: "Checkout Completed",
  properties: { "Total Price": 12.5, items: [{ sku: "a" }], nested: { a: { b: 1 } } },
});
await done("page", { userId: "u1", category: "Docs", name: "Home", properties: { url: "http://x" } });
await done("screen", { userId: "u1", category: "Main", name: "Start", properties: { build: 7 } });
await done("group", { userId: "u1", groupId: "g1", traits: { plan: "team" } });
await done("alias", { userId: "u1", previousId: "u0" });
process.exit(0);
