"""A package or bundle for aarch64: programs and libraries are for aarch64 and stripped, guest libraries need no glibc above
2.17 and programs none above 2.34, requirements name no other architecture, and programs answer under qemu.

    aarch64_package.py PACKAGE [REFERENCE]

REFERENCE: the same package for x86_64. Both have the same paths, modes, owners and links, the same content of files without
machine code, the same scripts, and the same requirements.
"""
import glob
import os
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile

EM_AARCH64 = 183  # elf.h
NOT_CROSS_BUILT = "/libexec/occtrace/gpu/runtime"  # of a bundle: nvcc makes it for the building machine only
PROGRAM = re.compile(r"(^|/)bin/[^/]+$")
GUEST = re.compile(r"/libocctrace(-preload|-exact|-nvtx)?\.so$")
# names of the one architecture in the other's words
WORDS = [("x86_64-linux-gnu", "aarch64-linux-gnu"), ("linux-x86_64", "linux-aarch64"),
         ("ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1")]


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}).stdout


def translated(text):
    for theirs, ours in WORDS:
        text = text.replace(theirs, ours)
    return text


def archive(path, work):
    """A tar archive of the package's files."""
    if path.endswith(".deb"):
        name = os.path.join(work, "files.tar")
        with open(name, "wb") as file:
            subprocess.run(["dpkg-deb", "--fsys-tarfile", path], check=True, stdout=file)
        return name
    if path.endswith(".rpm"):
        shutil.copy(path, work)
        subprocess.run(["rpm2archive", "-n", os.path.join(work, os.path.basename(path))], check=True, stdout=subprocess.DEVNULL)
        return glob.glob(os.path.join(work, "*.tar"))[0]
    return path


def requirements(path):
    if path.endswith(".deb"):
        return output("dpkg-deb", "-f", path, "Depends").strip().split(", ")
    if path.endswith(".rpm"):
        return output("rpm", "-qp", "--requires", path).splitlines()
    return []


def scripts(path):
    """Commands of an installation, upgrade or removal, and the names of settings."""
    if path.endswith(".deb"):
        with tempfile.TemporaryDirectory() as work:
            subprocess.run(["dpkg-deb", "-e", path, work], check=True)
            names = sorted(set(os.listdir(work)) - {"control", "md5sums"})
            return {name: open(os.path.join(work, name), encoding="utf-8").read() for name in names}
    if path.endswith(".rpm"):
        return {"scripts": output("rpm", "-qp", "--scripts", path), "settings": output("rpm", "-qpc", path)}
    return {}


def is_elf(content):
    return content is not None and content[:4] == b"\x7fELF"


def is_code(content):
    """A program, a library, or an archive of object files."""
    return is_elf(content) or content is not None and content[:8] == b"!<arch>\n"


class Package:
    """files: tar headers and contents (None: no regular file) by path; root: the files, unpacked."""

    def __init__(self, path, work):
        os.mkdir(work)
        self.path, self.root, self.files = path, os.path.join(work, "root"), {}
        with tarfile.open(archive(path, work)) as packed:
            packed.extractall(self.root)
            for entry in packed:
                name = os.path.normpath(entry.name).lstrip("/")
                self.files[name] = entry, packed.extractfile(entry).read() if entry.isreg() else None
        self.archives = [name for name, (_, content) in self.files.items() if is_code(content) and not is_elf(content)]
        self.files.pop(".", None)
        self.elves = {name: content for name, (_, content) in self.files.items() if is_elf(content)}
        self.requires, self.scripts = requirements(path), scripts(path)

    def directory(self):
        """The columns of "ls -l" without sizes and times, by path in the words of aarch64."""
        def line(entry, content):
            link = translated(entry.linkname)
            return entry.type, oct(entry.mode), entry.uname, entry.gname, link, is_code(content)
        return {translated(name): line(*file) for name, file in self.files.items() if not name.endswith(NOT_CROSS_BUILT)}

    def texts(self):
        """The contents of files without machine code."""
        return {translated(name): content for name, (_, content) in self.files.items()
                if content is not None and not is_code(content)}


def check_elf(name, content, root):
    machine = struct.unpack_from("<H", content, 18)[0]
    assert machine == EM_AARCH64, (name, "is for the machine", machine)
    path = os.path.join(root, name)
    needs = output("readelf", "-W", "-V", "-d", "-S", path)
    assert ".symtab" not in needs, (name, "is not stripped")
    versions = [int(minor) for minor in re.findall(r"GLIBC_2\.(\d+)", needs)]
    most = 17 if GUEST.search(name) else 34
    assert max(versions, default=0) <= most, (name, "needs glibc 2." + str(max(versions)))
    assert "x86-64" not in needs, (name, "names x86-64")
    return re.findall(r"\(NEEDED\).*\[(.*)\]", needs)


def check_archive(path):
    machines = set(re.findall(r"Machine: +(.*)", output("readelf", "-h", path)))
    assert machines == {"AArch64"}, (path, machines)


def check_carried(package, needed):
    """A bundle and an RPM carry what is not glibc's; a deb's libraries were found by dpkg-shlibdeps."""
    if package.path.endswith(".deb"):
        return
    for library in sorted(needed):
        glibc = re.match(r"lib(c|m|dl|pthread|rt)\.so\.|ld-linux-aarch64\.so\.1$", library)
        carried = any(name.endswith("lib/occtrace/" + library) for name in package.elves)
        assert glibc or carried or package.path.endswith(".rpm") and library + "()(64bit)" in package.requires, library


def check_requirements(package):
    for text in package.requires:
        assert not re.search("x86|amd64", text), text
        if package.path.endswith(".rpm") and re.match(r"(lib|ld-)\S+\.so", text):
            assert text.endswith("(64bit)"), text
    if package.path.endswith(".deb"):
        assert output("dpkg-deb", "-f", package.path, "Architecture") == "arm64\n"
    if package.path.endswith(".rpm"):
        assert output("rpm", "-qp", "--qf", "%{ARCH} %{OS}", package.path) == "aarch64 linux"


def check_programs(package):
    qemu = shutil.which("qemu-aarch64-static")
    programs = [name for name in package.elves if PROGRAM.search(name)]
    assert len(programs) >= 4, programs
    if not qemu or not os.path.exists("/lib/ld-linux-aarch64.so.1"):
        print("programs were not run: no qemu or no libraries of arm64 (scripts/setup --arm64)")
        return
    for name in programs:
        said = output(qemu, os.path.join(package.root, name), "--version")
        assert re.match(os.path.basename(name) + r" \d", said), (name, said)
    print(f"{len(programs)} programs answer under qemu: {' '.join(sorted(map(os.path.basename, programs)))}")


def differences(ours, theirs):
    return {name: (ours.get(name), theirs.get(name)) for name in sorted({*ours, *theirs}) if ours.get(name) != theirs.get(name)}


def check_reference(package, reference):
    found = differences(package.directory(), reference.directory())
    assert not found, found
    theirs = {name: translated(content.decode("latin-1")).encode("latin-1") for name, content in reference.texts().items()}
    found = sorted(differences(package.texts(), theirs))
    assert not found, found
    assert package.scripts == {name: translated(text) for name, text in reference.scripts.items()}
    return {translated(text) for text in reference.requires}


def without_versions(requires):
    """The first glibc of aarch64 was 2.17: a symbol's version is another one than on x86_64."""
    return {text for text in requires if "GLIBC_2." not in text}


def main():
    with tempfile.TemporaryDirectory() as work:
        package = Package(sys.argv[1], os.path.join(work, "package"))
        needed = set()
        for name, content in package.elves.items():
            needed.update(check_elf(name, content, package.root))
        for name in package.archives:
            check_archive(os.path.join(package.root, name))
        check_carried(package, needed)
        check_requirements(package)
        check_programs(package)
        if len(sys.argv) > 2:
            theirs = check_reference(package, Package(sys.argv[2], os.path.join(work, "reference")))
            found = without_versions(package.requires) ^ without_versions(theirs)
            assert not found, found
        print(f"ok: {len(package.files)} files, {len(package.elves)} of them programs and libraries of aarch64")


main()
