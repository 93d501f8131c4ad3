"""Archives that are damaged or mean harm: each case gives what is imported, from where, and what the line says."""

import gzip
import io
import os
import socket
import struct
import tarfile
import zipfile
from pathlib import Path

import numpy as np
from data_makers import folder_files, idx_bytes, truth, write, write_idx

FOLDER = folder_files(truth((3, 32, 32)))
FIRST = next(iter(FOLDER))


def cut(path, keep=0.6):
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * keep)])
    return path


def truncated_zip(tmp):
    return "cifar100", cut(write(FOLDER, tmp / "a", "zip")), "neither a directory nor a whole zip or tar"


def truncated_tar(tmp):
    return "cifar100", cut(write(FOLDER, tmp / "a", "tar")), "neither a directory nor a whole zip or tar"


def truncated_gz(tmp):
    write_idx(tmp / "mnist", truth((1, 28, 28)))
    cut(tmp / "mnist" / "train-images-idx3-ubyte.gz")
    return "mnist", tmp / "mnist", "cannot be read"


def damaged_member(tmp):
    path = write(FOLDER, tmp / "a", "zip")
    data = bytearray(path.read_bytes())
    data[100] ^= 255
    path.write_bytes(data)
    return "cifar100", path, "Bad CRC"


def zip_that_climbs(tmp):
    return "cifar100", write({**FOLDER, "train/../../../etc/x.png": b"x"}, tmp / "a", "zip"), "leads out of it"


def zip_with_an_absolute_path(tmp):
    return "cifar100", write({**FOLDER, "/etc/x.png": b"x"}, tmp / "a", "zip"), "leads out of it"


def tar_that_climbs(tmp):
    return "cifar100", write({**FOLDER, "../x/y/z.png": b"x"}, tmp / "a", "tar"), "leads out of it"


def tar_with_a_link(tmp):
    path = tmp / "a.tar"
    with tarfile.open(path, "w") as tar:
        link = tarfile.TarInfo("train/ant/00.png")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    return "cifar100", path, "link or a device"


def zip_bomb(tmp):
    path = tmp / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("train/ant/00.png", bytes(300 << 20))
    return "cifar100", path, "far more than such a data set has"


def zip_that_lies_about_a_size(tmp):
    """The directory of the archive says 100 bytes; the member unpacks to a megabyte."""
    path = tmp / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(FIRST, bytes(1234567))
        for name, data in list(FOLDER.items())[1:]:
            archive.writestr(name, data)
    data = path.read_bytes()
    path.write_bytes(data.replace(struct.pack("<I", 1234567), struct.pack("<I", 100)))
    return "cifar100", path, FIRST


def tar_bomb(tmp):
    path = tmp / "a.tar.gz"
    with tarfile.open(path, "w:gz", compresslevel=1) as tar:
        member = tarfile.TarInfo("train/ant/00.png")
        member.size = 100 << 20
        tar.addfile(member, io.BytesIO(bytes(100 << 20)))
    return "cifar100", path, "far more than such a data set has"


def tar_with_a_bomb_for_a_name(tmp):
    """A long name is read whole before the member is seen."""
    path = tmp / "a.tar.gz"
    head = tarfile.TarInfo("././@LongLink")
    head.type, head.size = tarfile.GNUTYPE_LONGNAME, 3 << 30
    path.write_bytes(gzip.compress(head.tobuf() + bytes(1 << 20)))
    return "cifar100", path, "far more than such a data set has"


def gz_bomb(tmp):
    write_idx(tmp / "mnist", truth((1, 28, 28)))
    head = idx_bytes(np.zeros((1, 1, 1), np.uint8))
    (tmp / "mnist" / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(head + bytes(140 << 20), 1))
    return "mnist", tmp / "mnist", "when it is unpacked"


def nothing_there(tmp):
    return "cub", tmp / "nowhere", "does not exist"


def an_empty_folder(tmp):
    (tmp / "empty").mkdir()
    return "mnist", tmp / "empty", "nothing that mnist comes as"


def a_text_file(tmp):
    (tmp / "notes.txt").write_text("hello")
    return "cifar10", tmp / "notes.txt", "neither a directory nor a whole zip or tar"


def a_pipe_instead_of_an_archive(tmp):
    os.mkfifo(tmp / "pipe")
    return "cifar10", tmp / "pipe", "a pipe, a socket or a device; give a file or a directory"


def a_device_instead_of_an_archive(tmp):
    return "cifar10", "/dev/zero", "a pipe, a socket or a device; give a file or a directory"


def a_pipe_in_a_folder(tmp):
    path = write(FOLDER, tmp / "a", "directory")
    (path / FIRST).unlink()
    os.mkfifo(path / FIRST)
    return "cifar100", path, "a pipe, a socket or a device; remove it"


def a_socket_in_a_folder(tmp):
    path = write(FOLDER, tmp / "a", "directory")
    (path / FIRST).unlink()
    here = os.getcwd()
    os.chdir((path / FIRST).parent)  # the path of a socket must be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(Path(FIRST).name)
    os.chdir(here)
    return "cifar100", path, "a pipe, a socket or a device; remove it"


def a_device_behind_a_link_in_a_folder(tmp):
    path = write(FOLDER, tmp / "a", "directory")
    (path / FIRST).unlink()
    (path / FIRST).symlink_to("/dev/zero")
    return "cifar100", path, "a pipe, a socket or a device; remove it"


def a_name_in_a_folder_that_is_not_utf8(tmp):
    path = write(FOLDER, tmp / "a", "directory")
    (path / FIRST).rename(os.fsdecode(os.fsencode((path / FIRST).parent) + b"/\xff.png"))
    return "cifar100", path, "holds a name that is not UTF-8: 'train/"


def a_name_in_a_tar_that_is_not_utf8(tmp):
    path = tmp / "a.tar"
    with tarfile.open(path, "w", format=tarfile.GNU_FORMAT, encoding="latin1") as tar:
        tar.addfile(tarfile.TarInfo("train/ant/\xe4.png"))
    return "cifar100", path, "holds a name that is not UTF-8: 'train/ant/\\udce4.png'"


def a_path_that_is_not_utf8(tmp):
    path = os.fsdecode(os.fsencode(tmp) + b"/\xff")
    write(FOLDER, Path(path), "directory")
    return "cifar100", path, "is not a name in UTF-8; rename it"


def a_home_that_nobody_has(tmp):
    return "cifar100", "~nobody-of-that-name/data", "cannot be read"


CASES = [
    a_pipe_instead_of_an_archive,
    a_device_instead_of_an_archive,
    a_pipe_in_a_folder,
    a_socket_in_a_folder,
    a_device_behind_a_link_in_a_folder,
    a_name_in_a_folder_that_is_not_utf8,
    a_name_in_a_tar_that_is_not_utf8,
    a_path_that_is_not_utf8,
    a_home_that_nobody_has,
    truncated_zip,
    truncated_tar,
    truncated_gz,
    damaged_member,
    zip_that_climbs,
    zip_with_an_absolute_path,
    tar_that_climbs,
    tar_with_a_link,
    zip_bomb,
    zip_that_lies_about_a_size,
    tar_bomb,
    tar_with_a_bomb_for_a_name,
    gz_bomb,
    nothing_there,
    an_empty_folder,
    a_text_file,
]
