// Runs in a page that has loaded RudderStack's SDK, which has no call `screen`.
async (host, writeKey) => {
  const { RudderAnalytics } = window.rudderanalytics?.RudderAnalytics ? window.rudderanalytics : window;
  const analytics = new RudderAnalytics();
  analytics.load(writeKey, `http://${host}`, { configUrl: `http://${host}`, loadIntegration: false });
  await new Promise((resolve) => analytics.ready(resolve));
  const sent = (call, ...args) => new Promise((resolve) => analytics[call](...args, resolve));
  await sent("identify", "u1", { email: "a@b.c", age: 3 });
  await sent("track", "Checkout Completed", { "Total Price": 12.5, items: [{ sku: "a" }], nested: { a: { b: 1 } } });
  await sent("page", "Docs", "Home", { build: 5 });
  await sent("group", "g1", { plan: "team" });
  await sent("alias", "u1", "u0");
};
