"""`make image-check`: build deploy/Dockerfile and run what compose.yaml starts in it.

It needs root, the Debian packages buildah and debootstrap, the package index, and some minutes.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from subprocess import DEVNULL, Popen
from typing import Any

import httpx
import yaml

from scheduler.supervisor.redis_server import find_binary
from tests import postgres
from tests.deploy import contained
from tests.deploy.contained import NOBODY, Contained, Images, Started
from tests.running import BASE, random_port

DEPLOY = BASE / "deploy"
IMAGE = "fumarole:check"
WITH_EXTRAS = "fumarole:check-extras"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
Visit = Callable[[Contained, httpx.Client], None]
_GRACE_SECONDS = 30
_PATIENCE_SECONDS = 600.0  # the first import of everything, from a file system just made
_NOT_IN_AN_IMAGE = ("tests", "var", ".git", "deploy/kubernetes/secrets")
_MAKE_TOKEN = """
from django.contrib.auth import get_user_model
from scheduler.services.accounts.tokens import create_token
from scheduler.services.accounts.actors import SYSTEM
admin = get_user_model().objects.get(username="admin")
print(create_token(admin, "image", ["read"], by=SYSTEM).secret)
"""
# with the protocol's own client, which starts the command as an assistant does
_ASK_AS_AN_ASSISTANT = """
import asyncio, os, sys
from mcp import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client

async def ask():
    words = ["-m", "dashboard.cli", "mcp"]
    given = StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ))
    async with stdio_client(given) as streams, ClientSession(*streams) as session:
        await session.initialize()
        print([tool.name for tool in (await session.list_tools()).tools])
        print((await session.call_tool("list_queues", {})).content)

asyncio.run(ask())
"""
_TRY_TO_WRITE = "touch /opt/fumarole/x /opt/venv/x /etc/x /var/lib/x 2>&1; touch /tmp/x && id -u"


def main() -> None:
    if why := contained.missing():
        sys.exit(why)
    with tempfile.TemporaryDirectory(prefix="fumarole-image-") as folder:
        images = Images(Path(folder))
        try:
            check(images, Path(folder))
        finally:
            images.remove()


def check(images: Images, folder: Path) -> None:
    for base in bases():
        say(f"the base {base}, by debootstrap")
        images.make_base(base)
    say("deploy/Dockerfile, by buildah")
    images.build(DEPLOY / "Dockerfile", BASE, IMAGE)
    settings = images.settings_of(IMAGE)
    expect(settings["User"] == f"{NOBODY}:{NOBODY}", f"the image runs as {settings['User']}")
    with ExitStack() as stack:
        root = stack.enter_context(images.mounted(IMAGE))
        look_into(root)
        inside = stack.enter_context(ready_to_run(root, settings, folder))
        try_to_write(inside)
        run_all(inside, folder)
        refuses_sign_on(inside)
        extras = names_of_extras()
        say(f"deploy/Dockerfile with all extras ({extras}), by buildah")
        images.build(DEPLOY / "Dockerfile", BASE, WITH_EXTRAS, extras=extras)
        fuller = stack.enter_context(images.mounted(WITH_EXTRAS))
        look_into(fuller)
        check_extras(Contained(fuller, inside.var, inside.sockets, inside.environment), folder)
    say("all is well")


def names_of_extras() -> str:
    files = sorted(BASE.glob("requirements-*.txt"))
    names = [file.stem.removeprefix("requirements-") for file in files]
    return " ".join(name for name in names if name != "dev")


def check_extras(inside: Contained, folder: Path) -> None:
    """The same processes on the same database, with a provider set."""
    has_extras(inside)
    try_to_write(inside)
    run_all(_with_sign_on(inside), folder, with_extras)


def with_extras(inside: Contained, visitor: httpx.Client) -> None:
    page = visitor.get("/accounts/login/").text
    expect("Sign in with" in page, "the page to sign in offers the provider")
    made = inside.run("python", "manage.py", "shell", "-c", _MAKE_TOKEN)
    token = made.stdout.strip().rpartition("\n")[2]
    expect(made.returncode == 0, f"a token is made: {made.stderr[-200:]}")
    server = str(visitor.base_url).rstrip("/")
    environment = inside.environment | {"VCCTL_SERVER": server, "VCCTL_TOKEN": token}
    signed_in = Contained(inside.root, inside.var, inside.sockets, environment)
    asked = signed_in.run("python", "-c", _ASK_AS_AN_ASSISTANT)
    expect("list_queues" in asked.stdout, f"vcctl mcp answers: {asked.stdout}{asked.stderr[-900:]}")


def bases() -> list[str]:
    names = re.findall(r"^FROM (\S+)", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    return sorted(set(names))


def look_into(root: Path) -> None:
    home = root / "opt/fumarole"
    (packages,) = (root / "opt/venv/lib").glob("python3.*")
    say(f"it has Debian's {packages.name}, not that of the base which the Dockerfile names")
    for name in _NOT_IN_AN_IMAGE:
        expect(not (home / name).exists(), f"/opt/fumarole has no {name}")
    pip = list((root / "opt/venv").glob("lib/python*/site-packages/pip"))
    expect(not pip, "there is no pip in /opt/venv")
    written = [file for file in home.rglob("*") if file.lstat().st_uid == NOBODY]
    expect(not written, "the processes own nothing of what they run")
    total = sum(file.lstat().st_size for file in (root / "opt").rglob("*") if file.is_file())
    say(f"/opt has {total // 1_000_000} MB")


def refuses_sign_on(inside: Contained) -> None:
    tried = _with_sign_on(inside).run("python", "manage.py", "check")
    said = "the packages for single sign-on are not installed"
    expect(said in tried.stderr, f"without the extra a provider is refused: {tried.stderr[-200:]}")


def has_extras(inside: Contained) -> None:
    tried = _with_sign_on(inside).run("python", "manage.py", "check")
    expect(tried.returncode == 0, f"with the extra a provider is taken: {tried.stderr[-200:]}")
    found = inside.run("python", "-c", "import allauth, apprise, kubernetes, mcp")
    expect(found.returncode == 0, f"all extras are there: {found.stderr[-200:]}")


def _with_sign_on(inside: Contained) -> Contained:
    names = {"SSO_ISSUER": "https://sso.example.com", "SSO_CLIENT_ID": "f"}
    environment = inside.environment | names | {"SSO_CLIENT_SECRET": "s"}
    return Contained(inside.root, inside.var, inside.sockets, environment)


@contextmanager
def ready_to_run(root: Path, settings: dict[str, Any], folder: Path) -> Iterator[Contained]:
    """With a PostgreSQL and a Redis outside of it."""
    var = folder / "var"
    var.mkdir()
    os.chown(var, NOBODY, NOBODY)
    port = random_port()
    redis = Popen([find_binary(), "--port", str(port), "--save", ""], cwd=folder, stdout=DEVNULL)
    try:
        with postgres.another_cluster() as address:
            sockets = Path(address.partition("?host=")[2])
            environment = dict(item.split("=", 1) for item in settings["Env"])
            environment |= of_compose(f"redis://127.0.0.1:{port}/0")
            yield Contained(root, var, sockets, environment)
    finally:
        redis.terminate()
        redis.wait()


def of_compose(redis: str) -> dict[str, str]:
    given: dict[str, str] = COMPOSE["services"]["web"]["environment"]
    ours = {
        "SECRET_KEY": "k" * 50,
        "DATABASE_URL": "postgres://postgres:@/postgres?host=/tmp/postgres",
        "REDIS_URL": redis,
    }
    plain = {name: re.sub(r"\$\{\w+:-(.*)\}", r"\1", value) for name, value in given.items()}
    return plain | ours


def try_to_write(inside: Contained) -> None:
    tried = inside.run("sh", "-c", _TRY_TO_WRITE)
    *refused, who = tried.stdout.splitlines()
    expect(len(refused) == 4, f"nothing can be written: {refused} {tried.stderr}")
    expect(who == str(NOBODY), f"it is nobody, and has /tmp: {who}")
    mounts = inside.run("cat", "/proc/mounts").stdout.splitlines()
    (own,) = [line.split()[3] for line in mounts if line.split()[1] == "/"]
    expect("ro" in own.split(","), f"the file system is read-only: {own}")


def run_all(inside: Contained, folder: Path, then: Visit | None = None) -> None:
    """`then`: what else is asked while all run."""
    services = COMPOSE["services"]
    prepared = inside.run(*shlex.split(services["prepare"]["command"]))
    expect(prepared.returncode == 0, f"prepare: {prepared.stdout}{prepared.stderr}")
    password = inside.var / "admin-password"
    expect(password.stat().st_mode & 0o777 == 0o600, "the first password is its owner's")
    port = str(random_port())
    started: dict[str, Started] = {}
    try:
        for name in ("web", "scheduler", "worker", "beat"):
            words = [port if word == "8000" else word for word in command_of(services[name])]
            started[name] = inside.start(words, folder / f"{name}.log")
        watch(inside, started, port, then)
    except BaseException:
        for name in started:
            say(f"{name}: {(folder / f'{name}.log').read_text()[-2000:]}")
        raise
    finally:
        codes = {name: started[name].stop(_GRACE_SECONDS) for name in reversed(started)}
    expect(set(codes.values()) == {0}, f"all end when they are asked to: {codes}")


def command_of(service: dict[str, Any]) -> list[str]:
    return shlex.split(service["command"])


def watch(inside: Contained, started: dict[str, Started], port: str, then: Visit | None) -> None:
    with httpx.Client(
        base_url=f"http://127.0.0.1:{port}", headers={"Host": "localhost"}, trust_env=False
    ) as visitor:
        wait_until_ready(visitor)
        health = COMPOSE["services"]["web"]["healthcheck"]["test"][1:]
        asked = inside.run(*(word.replace(":8000", f":{port}") for word in health))
        expect(asked.returncode == 0, f"the health check of compose.yaml: {asked.stderr}")
        page = visitor.get("/accounts/login/")
        expect(page.status_code == 200, f"the page to sign in: {page.status_code}")
        (sheet, *_) = re.findall(r'href="(/static/[^"]+\.css)"', page.text)
        expect(visitor.get(sheet).status_code == 200, f"its style sheet: {sheet}")
        if then is not None:
            then(inside, visitor)
    for name, process in started.items():
        status = process.status()
        expect(status["Uid"].split() == [str(NOBODY)] * 4, f"{name} is nobody")
        expect(int(status["CapBnd"], 16) == 0, f"{name} can gain no rights")
        expect(status["NoNewPrivs"].strip() == "1", f"{name} stays without them")


def wait_until_ready(visitor: httpx.Client) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    said = "nothing"
    while time.monotonic() < deadline:
        try:
            answer = visitor.get("/readyz")
        except httpx.HTTPError as error:
            said = str(error)
        else:
            said = answer.text
            if answer.json().get("status") == "ok":
                return say(f"/readyz: {said}")
        time.sleep(0.5)
    raise SystemExit(f"it did not get ready: {said}")


def say(text: str) -> None:
    print(f"image-check: {text}", flush=True)


def expect(holds: bool, what: str) -> None:
    if not holds:
        raise SystemExit(f"image-check: this is not so: {what}")
    say(f"yes: {what}")


if __name__ == "__main__":
    main()
