"""Calls to one service of AWS, with errors that say who must act."""

import functools
from collections.abc import Collection
from typing import Any

from eventlake.aws.refusals import code_of, explained
from eventlake.aws.session import AwsOptions, client
from eventlake.errors import InvalidSettingsError

_NO_SUCH_THING = ("InvalidRequestException", "ResourceNotFoundException", "ValidationException")


class Service:
    """A service; `hint` says what to check if it does not know what is asked about.

    Answers with a code that is `for_the_caller` are raised as they are; one with a code of
    `no_such_thing` is about what the settings name.
    """

    def __init__(
        self,
        name: str,
        options: AwsOptions,
        *,
        hint: str = "correct the settings of aws",
        for_the_caller: Collection[str] = (),
        no_such_thing: Collection[str] = _NO_SUCH_THING,
        **config: Any,
    ) -> None:
        self._name = name
        self._options = options
        self._hint = hint
        self._for_the_caller = for_the_caller
        self._no_such_thing = no_such_thing
        self._config = config

    @functools.cached_property
    def _client(self) -> Any:
        return client(self._name, self._options, **self._config)

    def ask(self, method: str, what: str, **asked: Any) -> Any:
        """Carry out one call; `what` says for messages what it is for."""
        try:
            return getattr(self._client, method)(**asked)
        except Exception as error:
            if code_of(error) in self._for_the_caller:
                raise
            if code_of(error) in self._no_such_thing:
                raise InvalidSettingsError(f"could not {what}: {error}", fix=self._hint) from error
            problem = explained(error, what, self._options)
            if problem is None:
                raise
            raise problem from error
