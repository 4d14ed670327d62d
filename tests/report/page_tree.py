"""A page as a tree, strict about what is closed where."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "link", "br", "input"}


class Node:
    def __init__(self, tag: str, attributes: dict[str, str], parent: Node | None) -> None:
        self.tag, self.attributes, self.parent = tag, attributes, parent
        self.content: list[Node | str] = []

    @property
    def children(self) -> list[Node]:
        return [part for part in self.content if isinstance(part, Node)]

    def all(self, tag: str | None = None, **attributes: str) -> list[Node]:
        """Descendants in document order; `class_` must be among the classes."""
        wanted = {name.strip("_").replace("_", "-"): value for name, value in attributes.items()}
        found = []
        for child in self.children:
            same = all(value in child.attributes.get(name, "").split() for name, value in wanted.items())
            if (tag is None or child.tag == tag) and same:
                found.append(child)
            found.extend(child.all(tag, **attributes))
        return found

    @property
    def text(self) -> str:
        """All text below, in document order, blanks drawn together."""
        return " ".join(" ".join(part if isinstance(part, str) else part.text for part in self.content).split())

    def above(self, tag: str) -> Node:
        node = self.parent
        while node is not None and node.tag != tag:
            node = node.parent
        assert node is not None
        return node


class Tree(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.root = self._at = Node("", {}, None)
        self.feed(page)
        self.close()
        assert self._at is self.root, f"<{self._at.tag}> is never closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, {name: value or "" for name, value in attrs}, self._at)
        self._at.content.append(node)
        if tag not in VOID:
            self._at = node

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._at.content.append(Node(tag, {name: value or "" for name, value in attrs}, self._at))

    def handle_endtag(self, tag: str) -> None:
        assert tag == self._at.tag, f"</{tag}> closes <{self._at.tag}>"
        assert self._at.parent is not None
        self._at = self._at.parent

    def handle_data(self, data: str) -> None:
        self._at.content.append(data)
