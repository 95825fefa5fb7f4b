"""The SBOM of a release against CycloneDX's schema and against the release's files.   check_sbom.py DIR

Without the schema (scripts/setup --release) or jsonschema it says so, and checks the rest.
"""
import glob
import hashlib
import json
import os
import sys
import warnings

SCHEMAS = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "occtrace/cyclonedx")
BASE = "http://cyclonedx.org/schema/"
NAMES = ["bom-1.5.SNAPSHOT.schema.json", "spdx.SNAPSHOT.schema.json", "jsf-0.82.SNAPSHOT.schema.json"]


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def check_schema(sbom):
    try:
        import jsonschema
        schemas = {BASE + name: read(os.path.join(SCHEMAS, name)) for name in NAMES}
    except (ImportError, OSError) as reason:
        print("not checked against the schema:", reason)
        return
    warnings.simplefilter("ignore", DeprecationWarning)
    top = BASE + NAMES[0]
    resolver = jsonschema.RefResolver(top, schemas[top], store=schemas)
    jsonschema.Draft7Validator(schemas[top], resolver=resolver).validate(sbom)
    print("valid by CycloneDX's schema of", sbom["specVersion"])


def main():
    folder = sys.argv[1]
    sbom = read(glob.glob(os.path.join(folder, "*.cdx.json"))[0])
    check_schema(sbom)
    components = {component["bom-ref"]: component for component in sbom["components"]}
    parts = {entry["ref"]: entry["dependsOn"] for entry in sbom["dependencies"]}
    for path in glob.glob(os.path.join(folder, "occtrace*")):
        name = os.path.basename(path)
        if name.endswith(".cdx.json"):
            continue
        with open(path, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        assert components["file:" + name]["hashes"] == [{"alg": "SHA-256", "content": digest}], name
        names = {components[ref]["name"] for ref in parts["file:" + name]}
        if name.endswith((".tar.gz", ".whl", ".rpm")):
            assert {"sqlite3", "libzstd", "acl", "nettle", "util-linux"} <= names, (name, names)
        if name.endswith(".deb"):
            assert {"libsqlite3-0", "libc6"} <= names, (name, names)
    assert all(ref in components for refs in parts.values() for ref in refs)
    assert all(component.get("version") for component in sbom["components"] if component.get("licenses"))


main()
