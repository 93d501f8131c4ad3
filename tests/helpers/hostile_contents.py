"""Whole archives with bad content: each case gives what is imported, from where, and what the line says."""

import os
import pickle
import struct
import zlib

import numpy as np
import torch
from data_makers import cifar_files, cub_files, idx_bytes, mini_files, png, tiny_files, truth, write, write_idx
from hostile_archives import FIRST, FOLDER, cut

from bcl.nets import ResNet18


class Calls:
    """A pickle that calls a function."""

    def __reduce__(self):
        return os.mkdir, ("called",)


def truncated_idx(tmp):
    write_idx(tmp / "mnist", truth((1, 28, 28)), gz=False)
    cut(tmp / "mnist" / "t10k-images-idx3-ubyte")
    return "mnist", tmp / "mnist", "should hold 4,704 bytes"


def truncated_binary(tmp):
    path = write(cifar_files("cifar10", "binary", truth((3, 32, 32))), tmp / "c", "directory")
    cut(path / "data_batch_2.bin")
    return "cifar10", path, "not a whole number of records"


def truncated_pickle(tmp):
    path = write(cifar_files("cifar100", "python", truth((3, 32, 32))), tmp / "c", "directory")
    cut(path / "train")
    return "cifar100", path, "train"


def image_bomb(tmp):
    """Three kilobytes of PNG that claim 50,000 x 50,000 pixels."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 50_000, 50_000, 8, 2, 0, 0, 0)
    bomb = (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(bytes(1 << 20)))
        + chunk(b"IEND", b"")
    )
    return "cifar100", write({**FOLDER, FIRST: bomb}, tmp / "a", "zip"), FIRST


def pickle_that_calls(tmp):
    files = cifar_files("cifar100", "python", truth((3, 32, 32)))
    files["train"] = pickle.dumps({b"data": Calls()})
    return "cifar100", write(files, tmp / "c", "directory"), "mkdir, which no data set needs; refused"


def _cifar(tmp, train):
    files = cifar_files("cifar100", "python", truth((3, 32, 32)))
    return "cifar100", write({**files, "train": train}, tmp / "c", "directory")


def pickle_with_a_nested_key(tmp):
    """Python's hash of a tuple calls itself: for this one until the stack overflows."""
    depth = 300_000
    return *_cifar(tmp, b"\x80\x02}(" + b")" + b"\x85" * depth + b"K\x01u."), "it has more than 1000 tuples"


def pickle_with_a_nested_key_by_itself(tmp):
    return *_cifar(tmp, b"\x80\x02})" + b"\x85" * 300_000 + b"K\x01s."), "it has more than 1000 tuples"


def pickle_with_a_nested_key_in_an_old_dictionary(tmp):
    return *_cifar(tmp, b"(" + b")" + b"\x85" * 300_000 + b"K\x01d."), "it has more than 1000 tuples"


def pickle_with_a_set(tmp):
    return *_cifar(tmp, b"\x80\x04\x8f()" + b"\x85" * 300_000 + b"\x90."), "it has more than 1000 tuples"


def pickle_with_nested_values(tmp):
    return *_cifar(tmp, b"\x80\x02}U\x04data" + b"(" * 100_000 + b"l" * 100_000 + b"s."), "holds no array of images"


def pickle_that_changes_our_function(tmp):
    """Arguments by default, set through the code for an object's state."""
    state = b"N}X\x0c\0\0\0__defaults__K\x01\x85s\x86"
    return *_cifar(tmp, b"\x80\x02}U\x04datac_codecs\nencode\n" + state + b"bs."), "it changes an object"


def pickle_that_repeats_itself(tmp):
    """Some text once, and then a list of it as bytes, made anew ten thousand times."""
    text = b"X" + struct.pack("<I", 1 << 20) + b"a" * (1 << 20)
    again = b"h\x01h\x00\x85R"
    start = b"\x80\x02" + text + b"q\x000c_codecs\nencode\nq\x010"
    return *_cifar(tmp, start + b"}U\x04data](" + again * 10_000 + b"es."), "to fill the memory; refused"


def weights_that_call(tmp):
    torch.save({"conv1.weight": Calls()}, tmp / "weights.pth")
    return "resnet18", tmp / "weights.pth", "holds more than weights"


def weights_of_another_network(tmp):
    torch.save(ResNet18(10, 20, "pool").state_dict(), tmp / "weights.pth")
    return "resnet18", tmp / "weights.pth", "'conv1.weight' is (20, 3, 3, 3), not (64, 3, 7, 7)"


def truncated_weights(tmp):
    torch.save({"conv1.weight": torch.zeros(64, 3, 7, 7)}, tmp / "weights.pth")
    return "resnet18", cut(tmp / "weights.pth"), "weights.pth"


def image_that_does_not_decode(tmp):
    return "cifar100", write({**FOLDER, FIRST: b"not an image"}, tmp / "a", "zip"), f"{FIRST} does not decode"


def a_name_that_speaks_to_the_terminal(tmp):
    files = {name: data for name, data in FOLDER.items() if name != FIRST}
    files[f"{FIRST.rsplit('/', 1)[0]}/\x1b[2J\nbcl: fine.png"] = b"not an image"
    return "cifar100", write(files, tmp / "a", "tar"), "?[2J?bcl: fine.png does not decode"


def half_an_image(tmp):
    return "cifar100", write({**FOLDER, FIRST: FOLDER[FIRST][:1500]}, tmp / "a", "tar"), f"{FIRST} does not decode"


def class_missing_from_test(tmp):
    files = {name: data for name, data in FOLDER.items() if not name.startswith("test/bee")}
    return "cifar100", write(files, tmp / "a", "directory"), "class 'bee' has no test images"


def class_missing_from_idx(tmp):
    parts = truth((1, 28, 28))
    parts["test"][1][:] = 0
    write_idx(tmp / "mnist", parts)
    return "mnist", tmp / "mnist", "class '1' has no test images"


def one_image_too_few(tmp):
    files = {name: data for name, data in FOLDER.items() if name != FIRST}
    return "cifar100", write(files, tmp / "a", "directory"), "11 train images; cifar100 has 12"


def labels_and_images_differ_in_number(tmp):
    write_idx(tmp / "mnist", truth((1, 28, 28)), gz=False)
    (tmp / "mnist" / "train-labels-idx1-ubyte").write_bytes(idx_bytes(np.zeros(11, np.uint8)))
    return "mnist", tmp / "mnist", "12 train images and 11 labels do not match"


def label_out_of_range(tmp):
    parts = truth((3, 32, 32))
    parts["train"][1][0] = 7
    return (
        "cifar10",
        write(cifar_files("cifar10", "binary", parts), tmp / "c", "directory"),
        "label 7 is not one of 0..2",
    )


def pickle_with_too_few_labels(tmp):
    files = cifar_files("cifar100", "python", truth((3, 32, 32)))
    files["test"] = pickle.dumps({b"data": np.zeros((6, 3072), np.uint8), b"fine_labels": [0, 1]})
    return "cifar100", write(files, tmp / "c", "directory"), "6 images and 2 labels do not match"


def cub_lists_what_is_not_there(tmp):
    files = cub_files(truth((3, 24, 24)))
    del files[next(iter(files))]
    return "cub", write(files, tmp / "c", "directory"), "which images.txt lists"


def cub_tables_differ(tmp):
    files = cub_files(truth((3, 24, 24)))
    files["CUB/train_test_split.txt"] += b"\n99 1"
    return "cub", write(files, tmp / "c", "directory"), "do not list the same images"


def csv_lists_what_is_not_there(tmp):
    files = mini_files(np.zeros((3, 6, 3, 84, 84), np.uint8), "csv")
    files["val.csv"] += b"nowhere.png,bee\n"
    return "miniimagenet", write(files, tmp / "c", "directory"), "no nowhere.png"


def tiny_imagenet_does_not_list_an_image(tmp):
    files = tiny_files(truth((3, 64, 64)), "list")
    files["tiny-imagenet-200/val/images/val_99.png"] = png(np.zeros((3, 64, 64), np.uint8))
    return "tiny-imagenet", write(files, tmp / "c", "directory"), "val_99.png, which val_annotations.txt does not list"


def tiny_imagenet_without_validation_images(tmp):
    files = {name: data for name, data in tiny_files(truth((3, 64, 64)), "list").items() if "/val/" not in name}
    return "tiny-imagenet", write(files, tmp / "c", "directory"), "has no val/images/"


def tiny_imagenet_lists_no_class(tmp):
    files = tiny_files(truth((3, 64, 64)), "list")
    files["tiny-imagenet-200/val/val_annotations.txt"] += b"\nval_77.png"
    return "tiny-imagenet", write(files, tmp / "c", "directory"), "line 7: not a file name and a class"


def class_with_too_many_images(tmp):
    files = mini_files(np.zeros((3, 6, 3, 84, 84), np.uint8), "flat")
    files["bee/extra.png"] = png(np.zeros((3, 84, 84), np.uint8))
    return "miniimagenet", write(files, tmp / "c", "directory"), "class 'bee' has 7 images, not 6"


CASES = [
    truncated_idx,
    truncated_binary,
    truncated_pickle,
    image_bomb,
    pickle_that_calls,
    pickle_with_a_nested_key,
    pickle_with_a_nested_key_by_itself,
    pickle_with_a_nested_key_in_an_old_dictionary,
    pickle_with_a_set,
    pickle_with_nested_values,
    pickle_that_changes_our_function,
    pickle_that_repeats_itself,
    weights_that_call,
    weights_of_another_network,
    truncated_weights,
    image_that_does_not_decode,
    a_name_that_speaks_to_the_terminal,
    half_an_image,
    class_missing_from_test,
    class_missing_from_idx,
    one_image_too_few,
    labels_and_images_differ_in_number,
    label_out_of_range,
    pickle_with_too_few_labels,
    cub_lists_what_is_not_there,
    cub_tables_differ,
    csv_lists_what_is_not_there,
    class_with_too_many_images,
    tiny_imagenet_does_not_list_an_image,
    tiny_imagenet_without_validation_images,
    tiny_imagenet_lists_no_class,
]
