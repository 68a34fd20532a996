"""Changes of plans, of how they are enforced, and of transformations, each noted in the audit log."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from eventlake.control.plans import PlanVersion
from eventlake.control.sources import Source
from eventlake.errors import InvalidSettingsError
from eventlake.library.plans import explained
from eventlake.policies import plan as plans
from eventlake.policies.enforcement import Enforcement
from eventlake.policies.plan import Plan, Rule
from eventlake.policies.transformations import Transformation, shown
from eventlake.workspace import Workspace

FORWARDING = ("forwardingViolationsTo", "forwardingBlockedEventsTo")

Note = Callable[..., None]
Which = tuple[str, str, int]  # type, key and version of a rule


class RuleChanges:
    """What somebody changes about the events that get in."""

    def __init__(self, workspace: Workspace, who: str, note: Note) -> None:
        self._workspace = workspace
        self._who = who
        self._note = note

    # Plans

    def save_plan(self, plan: Plan) -> PlanVersion:
        """Keep a plan: a new one, or the next version of the one with its id or name."""
        saved = self._workspace.plans.save(plan, self._who)
        self._note("save plan", plan.name, after={"version": saved.version, "rules": len(plan.rules)})
        return saved

    def new_plan(self, name: str, rules: Iterable[Any] = (), description: str = "") -> Plan:
        if any(known.name == name for known in self._workspace.plans.all()):
            raise InvalidSettingsError(f"there is a plan {name!r}", fix="choose another name, or change that one")
        with explained():
            made = plans.of_rules(name, [plans.rule(one) for one in rules], description)
        self.save_plan(made)
        return self._workspace.plans.get(name)

    def describe_plan(self, which: str, name: str | None, description: str | None) -> Plan:
        """Give a plan another name or description."""
        before = self._workspace.plans.get(which)
        after = msgspec.structs.replace(
            before,
            name=before.name if name is None else name,
            description=before.description if description is None else description,
        )
        return self._changed(before, after, after.rules)

    def replace_rules(self, which: str, rules: Iterable[Any]) -> Plan:
        before = self._workspace.plans.get(which)
        with explained():
            return self._changed(before, before, [plans.rule(one) for one in rules])

    def update_rules(self, which: str, changes: Iterable[Mapping[str, Any]]) -> Plan:
        """Change rules of a plan, or add them; `newKey` gives one another event."""
        before = self._workspace.plans.get(which)
        rules = {_which(rule): rule for rule in before.rules}
        with explained():
            for told in changes:
                made = plans.rule({key: value for key, value in told.items() if key != "newKey"})
                was = rules.pop(_which(made), None)
                made = msgspec.structs.replace(made, created_at=was.created_at if was else made.created_at)
                if told.get("newKey"):
                    made = msgspec.structs.replace(made, key=told["newKey"])
                if _which(made) in rules:
                    raise InvalidSettingsError(f"there is a rule {made.name} already", fix="choose another key")
                rules[_which(made)] = made
        return self._changed(before, before, rules.values())

    def remove_rules(self, which: str, gone: Iterable[Which]) -> Plan:
        before, gone = self._workspace.plans.get(which), set(gone)
        known = {_which(rule) for rule in before.rules}
        if missing := gone - known:
            kind, key, version = min(missing)
            raise InvalidSettingsError(f"there is no rule {kind} {key!r} version {version}", fix="nothing was removed")
        return self._changed(before, before, [rule for rule in before.rules if _which(rule) not in gone])

    def _changed(self, before: Plan, after: Plan, rules: Iterable[Rule]) -> Plan:
        with explained():
            made = plans.of_rules(after.name, rules, after.description)
        self.save_plan(msgspec.structs.replace(made, id=before.id))
        return self._workspace.plans.get(before.id)

    def delete_plan(self, which: str) -> None:
        name = self._workspace.plans.get(which).name
        self._workspace.plans.delete(which)
        self._note("delete plan", name)

    # What sources do with them

    def connect_plan(self, which: str, slug: str) -> Source:
        source = self._workspace.sources.get(slug)
        self._workspace.plans.connect(which, source.id)
        self._note("connect plan", source.slug, after=self._workspace.plans.get(which).name)
        return source

    def disconnect_plan(self, slug: str) -> Source:
        source = self._workspace.sources.get(slug)
        plan, _ = self._workspace.plans.of_source(source.id)
        self._workspace.plans.disconnect(source.id)
        self._note("disconnect plan", source.slug, before=plan.name if plan else None)
        return source

    def enforce(self, slug: str, changes: Mapping[str, str]) -> Enforcement:
        """Change what becomes of events that are not as planned; sources that get something, by slug or id."""
        source = self._workspace.sources.get(slug)
        _, before = self._workspace.plans.of_source(source.id)
        given = {
            key: self._workspace.sources.get(value).id if key in FORWARDING and value else value
            for key, value in changes.items()
        }
        after = self._workspace.plans.enforce(source.id, given)
        if after != before:
            self._note(
                "change enforcement",
                source.slug,
                before=msgspec.to_builtins(before),
                after=msgspec.to_builtins(after),
            )
        return after

    # Transformations

    def save_transformation(self, slug: str, told: Any) -> Transformation:
        source = self._workspace.sources.get(slug)
        made = self._workspace.plans.transformations.save(source.id, told, self._who)
        self._note("save transformation", source.slug, after=shown(made))
        return made

    def remove_transformation(self, slug: str, which: str) -> Transformation:
        source = self._workspace.sources.get(slug)
        gone = self._workspace.plans.transformations.remove(source.id, which)
        self._note("remove transformation", source.slug, before=shown(gone))
        return gone


def _which(rule: Rule) -> Which:
    return rule.type, rule.key, rule.version
