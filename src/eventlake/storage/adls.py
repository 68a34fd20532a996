"""A lake in a container of Azure storage: ADLS Gen2, or any storage account with blobs."""

import functools
import re
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from eventlake.azure.identity import AzureOptions, Tokens
from eventlake.azure.refusals import is_refusal, no_token, refused, wrong
from eventlake.azure.vault import forget, revealed
from eventlake.errors import TransientError
from eventlake.storage.base import TIMEOUT
from eventlake.storage.object_files import READ_AT_ONCE
from eventlake.storage.objects import ObjectStorage, code_of, message_of

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_ABFSS = re.compile(r"abfss://(?P<container>[^@/]+)@(?P<account>[^./]+)\.dfs\.(?P<cloud>[^/]+)(/(?P<prefix>.*))?")
_WRITES = ("write", "create")
_LOOK_AGAIN = 0.2  # seconds
_MORE = re.compile(r"<AuthenticationErrorDetail>\s*([^<]+)")
_SIGNED = re.compile(r"[A-Za-z0-9+/]{43}=")  # the signature of a request
_MOST_SHOWN = 300  # characters of what Azure says


class AzureStorage(ObjectStorage):
    """Its root is abfss://container@account.dfs.core.windows.net/prefix, as Spark and Databricks write it."""

    extra = "azure"
    options: AzureOptions

    def __init__(self, root: str, options: AzureOptions | None = None, *, timeout: float = TIMEOUT) -> None:
        super().__init__(root, options or AzureOptions(), timeout=timeout)
        place = _ABFSS.fullmatch(self.root)
        if place is None:
            raise ValueError(f"not a root on Azure: {root}")
        self._account, self._container, self._cloud = place["account"], place["container"], place["cloud"]
        self._prefix = place["prefix"] or None

    def _connected(self) -> "ObjectStore":
        return self._store_with({})

    @functools.cached_property
    def _writing(self) -> "ObjectStore":
        """The store for what makes new files, which are encrypted in a scope if there is one."""
        scope = self.options.encryption_scope
        return self._store_with({"x-ms-encryption-scope": scope}) if scope else self._store

    def _store_for(self, request: str) -> "ObjectStore":
        return self._writing if request in _WRITES else self._store

    def _store_with(self, headers: dict[str, str]) -> "ObjectStore":
        from obstore.store import AzureStore  # noqa: PLC0415

        endpoint = self.options.endpoint or f"https://{self._account}.blob.{self._cloud}"
        return AzureStore(
            self._container,
            prefix=self._prefix,
            config={"account_name": self._account, "endpoint": endpoint},
            client_options={
                "connect_timeout": timedelta(seconds=10),
                "timeout": timedelta(seconds=60),
                "allow_http": endpoint.startswith("http://"),
                "default_headers": headers,
            },
            retry_config={"max_retries": 4, "retry_timeout": timedelta(seconds=self.timeout)},
            credential_provider=self._credentials,
        )

    @functools.cached_property
    def _credentials(self) -> Any:
        if self.options.account_key:
            return _Given({"access_key": revealed(self.options.account_key)})
        if self.options.sas_token:
            return _Given({"sas_token": revealed(self.options.sas_token).removeprefix("?")})
        secret = self.options.client_secret
        return Tokens(self.options, revealed(secret) if secret else None)

    def _copy(self, source: str, target: str) -> None:
        """Copy a file, and see that all of it has arrived: Azure may answer before, and the source is deleted next."""
        found = self.stat(source)
        if found is None:
            self._head(target)  # it was moved before, or it is lost
            return
        if self.options.encryption_scope:
            self._rewrite(source, target)
            return
        super()._copy(source, target)
        deadline = time.monotonic() + self.timeout
        while self._head(target).size != found.size:
            if time.monotonic() > deadline:
                raise TransientError(
                    f"{self.full(target)} is still not copied after {self.timeout:g} seconds",
                    fix="see whether Azure has trouble, then run it again",
                )
            time.sleep(_LOOK_AGAIN)

    def _rewrite(self, source: str, target: str) -> None:
        """Copy a file through this machine: a copy that Azure makes is not encrypted in a scope."""
        with self.open_stream(source) as content:
            self.upload(target, iter(lambda: content.read(READ_AT_ONCE), b""))

    def _explained(self, error: Exception, request: str, what: str, signed_in: Any) -> Exception | None:
        from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError  # noqa: PLC0415

        refusal = getattr(signed_in, "refusal", None)
        if refusal is not None:
            self._sign_in_anew()
            return no_token(refusal, what)
        answer = message_of(error) + _more_of(error)
        if problem := wrong(code_of(error), answer, what):
            return problem
        if isinstance(error, PermissionDeniedError | UnauthenticatedError) or is_refusal(code_of(error)):
            self._sign_in_anew()
            return refused(request, code_of(error), answer, what)
        if isinstance(error, BaseError | FileNotFoundError):
            return TransientError(f"could not {what}: {answer}", fix="check the network, then run it again")
        return None

    def _sign_in_anew(self) -> None:
        """Let the next request be made with what the settings and their vault say by then."""
        forget()
        for name in ("_credentials", "_store", "_writing"):
            self.__dict__.pop(name, None)


def _more_of(error: Exception) -> str:
    """Why Azure does not believe whoever asks, if it says: a clock that is off, a signature that has expired."""
    found = _MORE.search(str(error))
    return f" {_SIGNED.sub('…', found[1].strip().splitlines()[0])[:_MOST_SHOWN]}" if found else ""


class _Given:
    """A key or signature as it was given, which obstore asks for; no error tells it."""

    def __init__(self, credential: dict[str, str]) -> None:
        self._credential = credential

    def __call__(self) -> Any:
        return {**self._credential, "expires_at": None}
