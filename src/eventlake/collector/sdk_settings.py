"""What SDKs for browsers ask for before they send: Segment's settings and RudderStack's source configuration."""

from typing import Any

from eventlake.collector.addresses import Public
from eventlake.collector.keys import KeyHolder


def segment_settings(write_key: str, public: Public) -> dict[str, Any]:
    """For analytics.js: no destinations but this one."""
    return {
        "integrations": {
            "Segment.io": {
                "apiKey": write_key,
                "apiHost": f"{public.host}/v1",
                "protocol": public.scheme,
                "unbundledIntegrations": [],
                "addBundledMetadata": True,
                "maybeBundledConfigIds": {},
                "versionSettings": {"version": "4.4.7", "componentTypes": ["browser"]},
            }
        },
        "plan": {"track": {"__default": {"enabled": True, "integrations": {}}}},
        "edgeFunction": {},
        "analyticsNextEnabled": True,
        "middlewareSettings": {},
        "enabledMiddleware": {},
        "metrics": {"sampleRate": 0},
        "legacyVideoPluginsEnabled": False,
        "remotePlugins": [],
    }


def rudderstack_config(write_key: str, holder: KeyHolder) -> dict[str, Any]:
    """For RudderStack's SDK: no destinations, and no reports about itself."""
    off = {"enabled": False}
    return {
        "source": {
            "id": holder.source_id,
            "name": holder.name,
            "writeKey": write_key,
            "enabled": holder.enabled,
            "config": {"statsCollection": {"errors": off, "metrics": off}},
            "workspaceId": holder.source_id,
            "destinations": [],
            "connections": [],
            "dataplanes": {},
            "updatedAt": "2026-01-01T00:00:00.000Z",
        },
        "updatedAt": "2026-01-01T00:00:00.000Z",
    }
