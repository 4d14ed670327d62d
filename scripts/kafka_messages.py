"""Write rebalance_lab/wire/kafka/{messages/*,apis,error_codes}.py from Kafka's own jars: `make messages`.

Kafka's jars hold a definition of each message: its fields, their types, and the versions that have them. These facts
become typed classes, which are committed; the definitions and their comments are not. Maven fetches the jars, which are
those of the tier `kafka`. A new message is a name in REQUESTS or STORED.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from rebalance_lab.wire.kafka.schema import NUMBERS, read_versions
from rebalance_lab.world.kafka import jars
from rebalance_lab.world.live.java import java_command

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "rebalance_lab" / "wire" / "kafka"
VERSION = jars.VERSIONS[jars.Role.BROKER]

#: APIs of which request and response are generated.
REQUESTS = (
    *("Produce", "Fetch", "ListOffsets", "Metadata", "LeaderAndIsr", "StopReplica", "UpdateMetadata"),
    *("ControlledShutdown", "FindCoordinator", "ApiVersions", "CreateTopics", "DeleteTopics", "InitProducerId"),
    *("OffsetForLeaderEpoch", "DescribeConfigs", "AlterConfigs", "CreatePartitions", "IncrementalAlterConfigs"),
    *("AlterPartition", "DescribeCluster", "ElectLeaders", "AlterPartitionReassignments"),
    "ListPartitionReassignments",
)

#: Module -> the messages in it that are no request or response of an API.
STORED = {
    "headers": ("RequestHeader", "ResponseHeader"),
    "consumer_protocol": ("ConsumerProtocolSubscription", "ConsumerProtocolAssignment"),
    "offsets_topic": ("OffsetCommitKey", "OffsetCommitValue", "GroupMetadataKey", "GroupMetadataValue"),
}

HEAD = f'''"""{{what}}

Written by `make messages` from the message definitions of Kafka {VERSION}. Do not edit.
"""

from __future__ import annotations
'''

PYTHON_TYPES = {
    "string": "str",
    "bytes": "bytes",
    "records": "bytes",
    "uuid": "bytes",
    "bool": "bool",
    "float64": "float",
}

Definition = dict[str, Any]


def main() -> None:
    written = generate(TARGET)
    print(f"{len(written)} modules from Kafka {VERSION}, {sum(each.count(chr(10)) for each in written.values())} lines")


def generate(target: Path) -> dict[str, str]:
    """Write all modules below `target` and return them: path from there -> text."""
    found = definitions()
    modules = {f"messages/{name}.py": text for name, text in message_modules(found)}
    modules |= {"apis.py": apis_module(found), "error_codes.py": error_codes_module()}
    (target / "messages").mkdir(parents=True, exist_ok=True)
    for old in (target / "messages").glob("*.py"):
        old.unlink()
    for name, text in modules.items():
        (target / name).write_text(text, encoding="utf-8")
    paths = [str(target / name) for name in modules]
    ruff = [sys.executable, "-m", "ruff", "format", "--quiet", f"--config={ROOT / 'pyproject.toml'}"]
    subprocess.run([*ruff, *paths], check=True)
    return {name: (target / name).read_text(encoding="utf-8") for name in modules}


# -- what Kafka's jars say ------------------------------------------------------------------------


def definitions() -> dict[str, Definition]:
    """Name of a message -> its definition."""
    found: dict[str, Definition] = {}
    for jar in _jars():
        with ZipFile(jar) as archive:
            for name in archive.namelist():
                if re.fullmatch(r"common/message/\w+\.json", name):
                    text = re.sub(r"(?m)^\s*//.*$", "", archive.read(name).decode())
                    found[Path(name).stem] = json.loads(text)
    return found


def _jars() -> Iterator[str]:
    wanted = {f"kafka-clients-{VERSION}.jar", f"kafka-group-coordinator-{VERSION}.jar"}
    return (each for each in jars.class_path(jars.Role.BROKER).split(os.pathsep) if Path(each).name in wanted)


def java(source: Path, *arguments: str) -> str:
    """What a Java program of one file says, with Kafka's classes at hand."""
    command = [str(java_command()), "-cp", jars.class_path(jars.Role.BROKER), str(source), *arguments]
    with tempfile.TemporaryDirectory() as scratch:
        return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=scratch).stdout


# -- names ----------------------------------------------------------------------------------------


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def field_name(name: str) -> str:
    """Kafka's name in Python's spelling; times and durations end in their unit, which is always the millisecond."""
    plain = snake(name)
    return f"{plain}_ms" if plain.endswith(("timestamp", "timeout")) else plain


# -- messages -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Structure:
    """A nested structure of one message. `versions`: where it can occur."""

    name: str
    fields: list[Definition]
    versions: str


def message_modules(found: dict[str, Definition]) -> Iterator[tuple[str, str]]:
    """(name, text) of each module in messages/."""
    yield "__init__", HEAD.format(what="Kafka's messages, a module for each API.").partition("\nfrom")[0]
    for api in REQUESTS:
        pair = (found[f"{api}Request"], found[f"{api}Response"])
        yield snake(api), module(f"{api}, API {pair[0]['apiKey']}.", pair)
    for name, messages in STORED.items():
        yield name, module(f"{', '.join(messages)}.", tuple(found[each] for each in messages))


def module(what: str, messages: tuple[Definition, ...]) -> str:
    """The text of a module with these messages. Structures of one name get that of their message before it."""
    structures = [list(_structures(each)) for each in messages]
    names = [each.name for of_one in structures for each in of_one]
    body = []
    for message, of_one in zip(messages, structures, strict=True):
        new_names = {
            each.name: each.name if names.count(each.name) == 1 else f"{message['name']}{each.name}" for each in of_one
        }
        defaulted = {each["type"] for owner in of_one for each in owner.fields} | {
            each["type"] for each in message["fields"]
        }
        for each in of_one:
            body.append(_class_head(new_names[each.name], "msgspec.Struct"))
            body += _lines(each.fields, each.versions, new_names, all_default=each.name in defaulted)
        body.append(_class_head(message["name"], "Message"))
        body.append(f"    VERSIONS = read_versions({message['validVersions']!r})")
        body.append(f"    FLEXIBLE = read_versions({message['flexibleVersions']!r})\n")
        body += _lines(message["fields"], message["validVersions"], new_names)
    return "\n".join([HEAD.format(what=what), *_imports("\n".join(body)), *body, ""])


def _imports(body: str) -> list[str]:
    names = [name for name in ("ZERO_UUID", "Message", "read_versions", "wire") if re.search(rf"\b{name}\b", body)]
    return [
        *(["from typing import Annotated\n"] if "Annotated[" in body else []),
        *(["import msgspec\n"] if "msgspec." in body else []),
        f"from rebalance_lab.wire.kafka.schema import {', '.join(names)}\n",
    ]


def _class_head(name: str, base: str) -> str:
    return f"\n\nclass {name}({base}, frozen=True, kw_only=True, gc=False):"


def _structures(message: Definition) -> Iterator[Structure]:
    """The nested structures of a message, those that others use first."""
    common = {each["name"]: each["fields"] for each in message.get("commonStructs", [])}
    seen: set[str] = set()

    def walk(fields: list[Definition]) -> Iterator[Structure]:
        for field in fields:
            name = field["type"].removeprefix("[]")
            if name[0].isupper() and name not in seen:
                seen.add(name)
                inner = field.get("fields") or common[name]
                yield from walk(inner)
                # A structure that several fields share may be in versions in which this field is not.
                yield Structure(name, inner, "0+" if name in common else field["versions"])

    return walk(message["fields"])


def _lines(
    fields: list[Definition], versions: str, names: dict[str, str], *, all_default: bool = False
) -> Iterator[str]:
    """A line for each field. `versions`: those of the structure that has it. `all_default`: so that
    the structure can be the default of a field."""
    whole = read_versions(versions)
    for field in fields:
        own = read_versions(field["versions"])
        everywhere = own.first <= whole.first and own.last >= whole.last and "tag" not in field
        given = "" if everywhere and "default" not in field and not all_default else f" = {_default(field, names)}"
        yield f"    {field_name(field['name'])}: Annotated[{_python_type(field, names)}, {_wire(field)}]{given}"
    if not fields:
        yield "    pass"


def _python_type(field: Definition, names: dict[str, str]) -> str:
    item = field["type"].removeprefix("[]")
    python = PYTHON_TYPES.get(item) or ("int" if item in NUMBERS else names[item])
    if field["type"].startswith("[]"):
        python = f"tuple[{python}, ...]"
    return f"{python} | None" if "nullableVersions" in field or field.get("default") == "null" else python


def _wire(field: Definition) -> str:
    item = field["type"].removeprefix("[]")
    kind = field["type"].replace(item, "struct") if item[0].isupper() else field["type"]
    options = {
        "nullable": field.get("nullableVersions"),
        "tag": field.get("tag"),
        "tagged": field.get("taggedVersions"),
        "flexible": field.get("flexibleVersions"),
        "ignorable": field.get("ignorable") or None,
    }
    given = [f"{name}={value!r}" for name, value in options.items() if value is not None]
    return f"wire({', '.join([repr(kind), repr(field['versions']), *given])})"


def _default(field: Definition, names: dict[str, str]) -> str:
    """The value of a field that is not given, as Python source."""
    kind, value = field["type"], field.get("default")
    if value == "null":
        return "None"
    plain = {"string": repr(value or ""), "bytes": "b''", "records": "b''", "uuid": "ZERO_UUID"}
    if kind.startswith("[]"):
        return "()"
    if kind in plain:
        return plain[kind]
    if kind == "bool":
        return str(value in (True, "true"))
    if kind == "float64":
        return repr(float(value or 0))
    return str(int(str(value), 0) if value else 0) if kind in NUMBERS else f"{names[kind]}()"


# -- tables ---------------------------------------------------------------------------------------


def apis_module(found: dict[str, Definition]) -> str:
    """The table of APIs, by key."""
    ordered = sorted(REQUESTS, key=lambda api: found[f"{api}Request"]["apiKey"])
    imports = [
        f"from rebalance_lab.wire.kafka.messages.{snake(api)} import {api}Request, {api}Response"
        for api in sorted(REQUESTS)
    ]
    keys = [f"    {snake(api).upper()} = {found[f'{api}Request']['apiKey']}" for api in ordered]
    rows = [f"    ApiKey.{snake(api).upper()}: Api({api!r}, {api}Request, {api}Response)," for api in ordered]
    return "\n".join(
        [
            HEAD.format(what="The APIs that the lab knows: keys, names, messages, and with them the versions."),
            "from enum import IntEnum\nfrom typing import NamedTuple\n",
            *imports,
            "from rebalance_lab.wire.kafka.schema import Message, Versions\n\n",
            "class ApiKey(IntEnum):",
            *keys,
            "\n\nclass Api(NamedTuple):",
            "    name: str\n    request: type[Message]\n    response: type[Message]\n",
            "    @property\n    def versions(self) -> Versions:\n        return self.request.VERSIONS\n\n",
            "APIS = {",
            *rows,
            "}\n",
        ]
    )


def error_codes_module() -> str:
    """Kafka's error codes, as its class Errors has them."""
    rows = [line.split("\t") for line in java(Path(__file__).with_name("KafkaErrors.java")).splitlines()]
    codes = [f"    {name} = {code}, {retriable.capitalize()}" for name, code, retriable in rows]
    return "\n".join(
        [
            HEAD.format(what="The error codes of Kafka's protocol."),
            "from enum import IntEnum\nfrom typing import Self\n\n",
            "class ErrorCode(IntEnum):",
            '    """`retriable`: the same request may succeed later."""\n',
            "    retriable: bool\n",
            "    def __new__(cls, code: int, retriable: bool = False) -> Self:",
            "        self = int.__new__(cls, code)",
            "        self._value_ = code",
            "        self.retriable = retriable",
            "        return self\n",
            *codes,
            "",
        ]
    )


if __name__ == "__main__":
    main()
