// Runs in a page that has loaded analytics.js: sends all six calls to HOST with KEY.
async (host, writeKey, strategy) => {
  const options = {
    integrations: { "Segment.io": { apiHost: `${host}/v1`, protocol: "http", deliveryStrategy: { strategy, config: { size: 100, timeout: 500 } } } },
  };
  const [analytics] = await window.AnalyticsNext.AnalyticsBrowser.load({ writeKey, cdnURL: `http://${host}` }, options);
  await analytics.identify("u1", { email: "a@b.c", age: 3 });
  await analytics.track("Checkout Completed", { "Total Price": 12.5, items: [{ sku: "a" }], nested: { a: { b: 1 } } });
  await analytics.page("Docs", "Home", { build: 5 });
  await analytics.screen("Main", "Start", { build: 7 });
  await analytics.group("g1", { plan: "team" });
  await analytics.alias("u1", "u0");
};
