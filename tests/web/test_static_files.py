"""Static files: served from memory, with entity tags and compression."""

import gzip

from qkv.web.static_files import PAGES, StaticFile, read_files

BODY = {"keys": [[1, 0], [0, 1]], "values": [[1], [2]], "labels": ["a", "b"], "query": [1, 0], "scale": 1}


def error(found, status):
    assert found.status_code == status, found.text
    assert set(found.json()["error"]) == {"request", "problem", "hint"}
    return found.json()["error"]


def test_paths_of_a_request_never_reach_the_file_system(client):
    for path in (
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/../../etc/passwd",
        "/static//etc/passwd",
        "/etc/passwd",
    ):
        found = client.get(path)
        assert found.status_code == 404 and found.headers["content-type"] == "text/html; charset=utf-8"
    for name in ("../runs", "/etc/passwd", "a" * 41):
        found = client.post("/api/ask", json={"model": name, "question": "?"})
        error(found, 422 if len(name) > 40 else 404)
    error(client.get("/api/jobs/..%2f..%2fetc"), 404)
    error(client.get("/api/jobs/nothing"), 404)
    error(client.put("/api/lookup", json=BODY), 405)


def test_pages_have_entity_tags_and_are_compressed(client):
    first = client.get("/", headers={"accept-encoding": "gzip"})
    tag = first.headers["etag"]
    assert client.get("/", headers={"if-none-match": tag}).status_code == 304
    css = client.get("/theme.css", headers={"accept-encoding": "gzip"})
    assert css.headers["content-encoding"] == "gzip" and "--item-a" in css.text
    assert client.get("/lookup").text == first.text
    packed = client.post("/api/noise", json={}, headers={"accept-encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in client.post("/api/noise", json={}, headers={"accept-encoding": "identity"}).headers


def test_files_are_compressed_where_that_makes_them_smaller():
    text = StaticFile.of("a.js", b"x" * 1000)
    assert gzip.decompress(text.gzipped) == text.body and text.media_type == "text/javascript; charset=utf-8"
    assert StaticFile.of("a.js", b"x").gzipped is None
    assert StaticFile.of("a.woff2", b"x" * 1000).gzipped is None
    assert StaticFile.of("vendor/a.js", b"x").vendored and not text.vendored


def test_an_entity_tag_depends_on_the_content_alone():
    assert StaticFile.of("a.js", b"x").etag == StaticFile.of("b.css", b"x").etag != StaticFile.of("a.js", b"y").etag


def test_every_page_is_the_index_and_no_hidden_file_is_served():
    files = read_files()
    assert len({files[f"/{page}"].etag for page in PAGES}) == 1 and "/theme.css" in files
    assert not [path for path in files if "/." in path or "/_" in path]


def test_vendored_files_are_cached_for_a_day_and_others_are_revalidated(client):
    assert client.get("/static/vendor/d3.min.js").headers["cache-control"] == "public, max-age=86400"
    assert client.get("/static/app.js").headers["cache-control"] == "no-cache"


def test_an_unknown_path_is_a_page_with_links_and_under_api_it_is_json(client):
    for path in ("/nonsense", "/noise/x", "/%3Cscript%3E", "/%E2%82%AC", "/apix"):
        found = client.get(path)
        assert found.status_code == 404 and found.headers["content-type"] == "text/html; charset=utf-8"
        assert "There is no such page" in found.text and "href=/noise" in found.text and "script" not in found.text
    for path in ("/api", "/api/", "/api/nonsense"):
        assert error(client.get(path), 404)["hint"] == "See /api/openapi.json"
