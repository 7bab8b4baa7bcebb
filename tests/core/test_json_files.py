"""JSON that is bounded in depth, and objects whose checksum must fit."""

import json
import random
import time

import pytest

from qkv.core.json_files import CHECKSUM, MAX_BYTES, MAX_DEPTH, parse_json, read_json, verified, with_checksum

DATA = {"b": [1, 2.5, -0.0, "Łódź \ud800 \u0007"], "a": {"x": None, "2": True, "10": False}, "n": 10**30}


def test_data_comes_back_and_its_checksum_depends_on_values_only():
    sealed = with_checksum(DATA)
    assert verified(sealed) == DATA and list(sealed)[-1] == CHECKSUM
    for text in (json.dumps(sealed), json.dumps(sealed, indent=3), json.dumps(sealed, sort_keys=True)):
        assert verified(parse_json(text)) == DATA
    assert with_checksum(sealed) == sealed
    as_python, as_json = {"a": (1, 2), "b": {1: 0, 10: 0, 2: 0}}, {"b": {"2": 0, "10": 0, "1": 0}, "a": [1, 2]}
    assert with_checksum(as_python)[CHECKSUM] == with_checksum(as_json)[CHECKSUM]


@pytest.mark.parametrize("change", [{"a": {}}, {"c": 1}, {"n": 10**30 + 1}, {CHECKSUM: "0" * 16}, {CHECKSUM: None}])
def test_another_value_field_or_checksum_is_refused(change):
    with pytest.raises(ValueError, match="does not fit"):
        verified({**with_checksum(DATA), **change})


def test_a_missing_checksum_is_refused_where_it_is_required_and_an_edited_file_says_so():
    with pytest.raises(ValueError, match="missing"):
        verified(DATA)
    assert verified(DATA, required=False) == DATA
    assert verified({**DATA, "c": 3, CHECKSUM: "edited"}) == {**DATA, "c": 3}
    with pytest.raises(ValueError, match="list"):
        verified([1])


@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":'])
def test_deep_json_is_refused_with_its_depth(opening):
    with pytest.raises(ValueError, match=r"nested [12]00000 deep"):
        parse_json(opening * 100_000)
    closing = opening[::-1].translate(str.maketrans({"[": "]", "{": "}", '"': None, "a": None, ":": None}))
    per = len(closing)
    assert parse_json(opening * (MAX_DEPTH // per) + "1" + closing * (MAX_DEPTH // per))
    with pytest.raises(ValueError, match="nested"):
        parse_json(opening * (MAX_DEPTH // per + 1) + "1" + closing * (MAX_DEPTH // per + 1))


def test_brackets_in_strings_and_side_by_side_are_not_depth():
    for value in ("[" * 500, '\\"[' * 500, "\\" * 501 + "[" * 300):
        assert parse_json(json.dumps({"vocab": {value: 1}})) == {"vocab": {value: 1}}
    assert len(parse_json("[" + ",".join(["[]"] * 5000) + "]")) == 5000


def test_the_depth_of_hostile_text_is_found_in_linear_time():
    start = time.perf_counter()
    for text in ('"\\' * 300_000 + "[" * 101, '"' * 300_001 + "[" * 101, '"' + '\\"[' * 300_000):
        with pytest.raises(ValueError):
            parse_json(text)
    assert time.perf_counter() - start < 3


def test_depth_agrees_with_a_recursive_count():
    draw = random.Random(0)

    def value(left):
        kind = draw.choice("lodsn") if left else "s"
        if kind == "l":
            return [value(left - 1) for _ in range(draw.randrange(1, 3))]
        if kind in "od":
            return {draw.choice(["[", "}", 'a"', "\\"]): value(left - 1)}
        return draw.choice(["[[", '"]', "\\{", 1, None])

    def depth(x):
        inner = x.values() if isinstance(x, dict) else x if isinstance(x, list) else None
        return 0 if inner is None else 1 + max(map(depth, inner), default=0)

    from qkv.core import json_files

    for _ in range(300):
        made = value(12)
        text = json.dumps([made, *[[]] * 101], indent=draw.choice([None, 1]))
        assert json_files._depth(text) == max(depth(made), 1) + 1


def test_a_name_that_occurs_twice_is_refused():
    with pytest.raises(ValueError, match="twice"):
        parse_json('{"a": 1, "a": 2}')


def test_a_file_is_read_up_to_its_longest_length(tmp_path):
    path = tmp_path / "data.json"
    path.write_text(json.dumps(list(range(1000))))
    size = path.stat().st_size
    assert read_json(path) == read_json(path, size) == list(range(1000))
    with pytest.raises(ValueError, match=f"{size:,} bytes, and {size - 1:,} is the limit"):
        read_json(path, size - 1)
    assert MAX_BYTES == 64 * 1024 * 1024
