"""Corpora from small hand-made sources: WordNet data files, a SWORD module, speeches and chapters."""

import json
import struct
import zlib

import pytest

from pgm_text import prose, sources, sword, wordnet
from pgm_text.corpus import Document, fit, held_out, prepare, read_documents, unique
from pgm_text.packing import read_token_rows
from pgm_text.tokenizer import Tokenizer, train_tokenizer

HEADER = "  1 This software is provided under a licence.  \n  2 Keep this notice.  \n"


def data_line(offset, words, kind, gloss):
    fields = " ".join(f"{word} 0" for word in words)
    return f"{offset:08d} 03 {kind} {len(words):02x} {fields} 000 | {gloss}  \n"


@pytest.fixture
def wordnet_folder(tmp_path):
    folder = tmp_path / "wordnet"
    folder.mkdir()
    nouns = [
        data_line(n, [f"thing_{n}", f"object{n}"], "n", f'the thing number {n}; "look at thing {n}"')
        for n in range(300)
    ]
    nouns.append(data_line(301, ["broken"], "n", 'a gloss (with an open bracket; "so"'))
    nouns.append(data_line(302, ["long"], "n", "a short definition; " + '"' + "very long example " * 40 + '"'))
    nouns.append(data_line(303, ["longer"], "n", "a very long definition " * 40))
    (folder / "data.noun").write_text(HEADER + "".join(nouns))
    (folder / "data.verb").write_text(HEADER + data_line(1, ["get_up"], "v", "rise from bed"))
    adjectives = data_line(1, ["afraid(p)"], "a", "filled with fear") + data_line(
        2, ["galore(ip)"], "s", "in great numbers"
    )
    (folder / "data.adj").write_text(HEADER + adjectives)
    (folder / "data.adv").write_text(
        HEADER + data_line(1, ["so"], "r", 'to a great extent; "`so what,\' he said"- A. Writer')
    )
    return folder


def test_an_entry_is_words_part_of_speech_definition_and_example(wordnet_folder):
    entries = {entry.synset: entry for entry in wordnet.read_entries(wordnet_folder)}
    assert entries["noun-00000007"].text() == 'thing 7, object7 (noun): the thing number 7; "look at thing 7"'
    assert entries["noun-00000007"].text(examples=0) == "thing 7, object7 (noun): the thing number 7"
    assert entries["verb-00000001"].text() == "get up (verb): rise from bed"
    assert entries["adj-00000001"].text() == "afraid (adjective): filled with fear"
    assert entries["adj-00000002"].text() == "galore (adjective): in great numbers"
    assert entries["adv-00000001"].text() == "so (adverb): to a great extent; \"'so what,' he said\""


@pytest.mark.parametrize(
    ("gloss", "definition", "examples"),
    [
        ("plain words  ", "plain words", ()),
        ('a; b; "one"; "two"', "a; b", ("one", "two")),
        ('said of x; "one" - A. Writer; "two"-B', "said of x", ("one", "two")),
        ('especially in the phrase "the call of duty"', 'especially in the phrase "the call of duty"', ()),
        ("a  ( b ) , c ;", "a (b), c", ()),
        ('ends open; "never closed', "ends open", ("never closed",)),
    ],
)
def test_a_gloss_is_split_into_definition_and_examples(gloss, definition, examples):
    assert wordnet.split_gloss(gloss) == (definition, examples)


def test_the_notice_of_the_data_files_is_kept(wordnet_folder):
    assert wordnet.licence_notice(wordnet_folder) == "This software is provided under a licence.\nKeep this notice.\n"


def test_the_data_is_found_inside_an_unpacked_package(wordnet_folder, tmp_path):
    inner = tmp_path / "package/usr/share/wordnet"
    inner.parent.mkdir(parents=True)
    wordnet_folder.rename(inner)
    assert wordnet.find_data(tmp_path / "package") == inner
    with pytest.raises(FileNotFoundError, match="must hold data.noun, data.verb"):
        wordnet.find_data(tmp_path)


def test_about_five_per_cent_are_held_out_always_the_same():
    keys = [f"definition {n}" for n in range(20_000)]
    chosen = [held_out(key) for key in keys]
    assert 0.04 < sum(chosen) / len(keys) < 0.06
    assert chosen == [held_out(key.upper()) for key in keys]


def test_repeated_documents_are_kept_once():
    texts = ["A", "b", "a", "B", "c"]
    assert [d.text for d in unique(Document(t, t) for t in texts)] == ["A", "b", "c"]


def test_a_document_that_does_not_fit_is_shortened_or_left_out():
    tokenizer = train_tokenizer(["abc"], 259)
    documents = [Document("1", "abcdef", "abc"), Document("2", "abcdef"), Document("3", "ab")]
    assert [text for text, _ in fit(tokenizer, documents, 4)] == ["abc", "ab"]
    assert [text for text, _ in fit(tokenizer, documents, None)] == ["abcdef", "abcdef", "ab"]


def test_a_prepared_dictionary_has_text_tokenizer_rows_and_licence(wordnet_folder, tmp_path):
    out = tmp_path / "out"
    manifest = prepare(out, "dictionary", source=wordnet_folder, vocab_size=400, length=48)
    train, heldout = list(read_documents(out, "train")), list(read_documents(out, "heldout"))
    assert len(train) == manifest["counts"]["train"]["documents"]
    assert not set(train) & set(heldout) and heldout
    everything = train + heldout
    assert "long (noun): a short definition" in everything  # its example did not fit
    assert not [text for text in everything if text.startswith(("broken", "longer"))]
    assert sum(manifest["counts"][split]["left_out"] for split in ("train", "heldout")) == 1
    assert len(everything) == 305
    tokenizer = Tokenizer.load(out)
    assert tokenizer.vocab_size == 400
    codes, _ = next(read_token_rows(out / "tokens", "train"))
    assert [tokenizer.decode(row) for row in codes] == train  # line i is row i
    assert json.loads((out / "manifest.json").read_text()) == manifest
    assert "Keep this notice." in (out / manifest["licences"][0]["notice"]).read_text()


def test_preparing_twice_gives_the_same_files(wordnet_folder, tmp_path):
    for name in ("a", "b"):
        prepare(tmp_path / name, source=wordnet_folder, vocab_size=400, length=48)
    files = sorted(p.relative_to(tmp_path / "a") for p in (tmp_path / "a").rglob("*") if p.is_file())
    assert len(files) >= 9
    for file in files:
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_definitions_of_equal_wording_stay_on_one_side(wordnet_folder, tmp_path):
    lines = "".join(data_line(1000 + n, [f"twin{n}"], "n", "the very same definition") for n in range(40))
    with open(wordnet_folder / "data.noun", "a") as file:
        file.write(lines)
    prepare(tmp_path / "out", source=wordnet_folder, vocab_size=400, length=48)
    sides = [sum("twin" in text for text in read_documents(tmp_path / "out", split)) for split in ("train", "heldout")]
    assert sorted(sides) == [0, 40]


def test_unknown_names_and_missing_sources_are_told(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"corpus must be one of \['dictionary', 'prose'\], got 'poems'"):
        prepare(tmp_path, "poems")
    with pytest.raises(FileNotFoundError, match="is not a WordNet 3.0 folder"):
        prepare(tmp_path, source=tmp_path)
    with pytest.raises(FileNotFoundError, match="not a prepared corpus"):
        next(read_documents(tmp_path, "train"))
    monkeypatch.setattr(sources.shutil, "which", lambda program: None)
    with pytest.raises(FileNotFoundError, match="apt-get is not here to fetch it; name a folder with --source"):
        sources.debian_package("wordnet-base", tmp_path / "cache")
    with pytest.raises(FileNotFoundError, match="npm is not here"):
        sources.npm_package("@x/y", "1", tmp_path / "cache")


def test_a_failed_download_says_why(tmp_path, monkeypatch):
    monkeypatch.setattr(sources.shutil, "which", lambda program: program)
    failed = sources.subprocess.CompletedProcess([], 100, "", "E: first\nE: Unable to locate package\n")
    monkeypatch.setattr(sources.subprocess, "run", lambda *a, **k: failed)
    with pytest.raises(FileNotFoundError, match=r"Unable to locate package.*--source"):
        sources.debian_package("wordnet-base", tmp_path)
    assert not (tmp_path / "wordnet-base").exists()


VERSE = (
    '<chapter n="{n}" osisID="Gen.{n}" sID="Gen.{n}"/><title>Heading</title> <w lemma="x">In</w> <w>the</w>'
    ' <w>beginning</w>, <w>God</w><note placement="foot"><reference>1:1 </reference>A note.</note><w>created</w>'
    " <w>light</w>. "
    + "<w>More</w> <w>words</w> &amp; <w>more</w>. " * 20
    + '<chapter eID="Gen.{n}" n="{n}" osisID="Gen.{n}"/>'
)


def write_module(folder):
    folder.mkdir(parents=True)
    for name, books in (
        ("ot", ["a preface that is no chapter" + VERSE.format(n=1) + VERSE.format(n=2)]),
        ("nt", ["short"]),
    ):
        blocks = [book.encode() for book in books]
        packed = [zlib.compress(block) for block in blocks]
        starts = [sum(map(len, packed[:i])) for i in range(len(packed))]
        (folder / f"{name}.bzz").write_bytes(b"".join(packed))
        sizes = zip(starts, map(len, packed), map(len, blocks), strict=True)
        (folder / f"{name}.bzs").write_bytes(b"".join(struct.pack("<III", *size) for size in sizes))


def test_chapters_of_a_bible_module_have_no_notes_and_no_glued_words(tmp_path):
    write_module(tmp_path / "a/module")
    chapters = dict(sword.chapters(sword.find_module(tmp_path)))
    assert list(chapters) == ["Gen.1", "Gen.2"]
    assert chapters["Gen.1"].startswith("In the beginning, God created light. More words & more. More")
    with pytest.raises(FileNotFoundError, match="no SWORD text module"):
        sword.find_module(tmp_path / "a/module/none")


def test_a_damaged_module_is_named(tmp_path):
    write_module(tmp_path / "m")
    good = (tmp_path / "m/ot.bzs").read_bytes()
    (tmp_path / "m/ot.bzs").write_bytes(good[:8] + struct.pack("<I", 5))
    with pytest.raises(ValueError, match="ot.bzz is damaged"):
        list(sword.chapters(tmp_path / "m"))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("two  spaces\nand a line", "two spaces and a line"),
        ("a stop .Then more", "a stop. Then more"),
        ("glued.Then more, e.g. this", "glued. Then more, e.g. this"),
        ("what is .important here ,1892", "what is important here, 1892"),
        ("a table ......... 3", "a table ... 3"),
        ("mdash;so quot;said&quot; a\x02b", '—so "said" a b'),
        ("spaced , and . (so )", "spaced, and. (so )"),
    ],
)
def test_prose_is_cleaned(before, after):
    assert prose.clean_prose(before) == after


def test_a_prepared_prose_corpus_is_wrapped_into_full_rows(tmp_path):
    source = tmp_path / "source"
    write_module(source / "bible")
    (source / "novel").mkdir()
    (source / "speeches").mkdir()
    for n in range(1, 60):
        chapter = {"chapter": str(n), "title": "T", "text": f"Chapter {n} tells of the sea.\n" * 12}
        (source / f"novel/chapter_{n}.json").write_text(json.dumps(chapter))
        speech = {"year": 1790 + n, "text": f"Fellow citizens of the year {1790 + n}, peace. " * 12}
        (source / f"speeches/{1789 + n}_somebody_n.json").write_text(json.dumps(speech))
    manifest = prepare(tmp_path / "out", "prose", source=source, vocab_size=400, length=32)
    codes, labels = next(read_token_rows(tmp_path / "out/tokens", "train"))
    tokenizer = Tokenizer.load(tmp_path / "out")
    assert (codes[:, 0] == tokenizer.bos_id).all() and (codes[:, -1] == tokenizer.eos_id).all()
    assert (labels == 32).all()
    assert [item["name"] for item in manifest["licences"]] == [
        "World English Bible",
        "Moby Dick",
        "State of the Union",
    ]
    texts = [*read_documents(tmp_path / "out", "train"), *read_documents(tmp_path / "out", "heldout")]
    assert len(texts) == 2 * 59 + 1  # the two Bible chapters are equal, one is kept
    assert not any("\n" in text for text in texts)
