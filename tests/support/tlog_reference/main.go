// Reads the files that Muniment publishes with golang.org/x/mod/sumdb, the library that verifies Go's checksum database
// and from which the C2SP formats originate. It shares no code with Muniment, and so no misreading of the formats.
//
//	tlog_reference note KEYS NOTE                      prints the text if a key of KEYS signed it
//	tlog_reference sign SIGNER TEXT                    prints the note of a text, signed with a private key file
//	tlog_reference inclusion KEYS PROOF                checks a tlog-proof file
//	tlog_reference consistency KEYS OLD NEW HASHES     checks two notes with a file of hexadecimal hashes, one on each line
//	tlog_reference tiles KEYS DIR                      checks each leaf of each entry bundle through the tiles to the root
package main

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func read(path string) []byte {
	data, err := os.ReadFile(path)
	check(err)
	return data
}

// open verifies a note with the keys of a file, and parses the tree in its text.
func open(keys string, message []byte) (tlog.Tree, string) {
	var verifiers []note.Verifier
	for _, line := range strings.Split(string(read(keys)), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		verifier, err := note.NewVerifier(line)
		check(err)
		verifiers = append(verifiers, verifier)
	}
	opened, err := note.Open(message, note.VerifierList(verifiers...))
	check(err)
	lines := strings.Split(opened.Text, "\n")
	size, err := strconv.ParseInt(lines[1], 10, 64)
	check(err)
	return tlog.Tree{N: size, Hash: hash64(lines[2])}, opened.Text
}

func hash64(text string) (hash tlog.Hash) {
	data, err := base64.StdEncoding.DecodeString(text)
	check(err)
	if copy(hash[:], data) != len(hash) || len(data) != len(hash) {
		check(fmt.Errorf("%q is not a hash", text))
	}
	return hash
}

func inclusion(keys, path string) {
	head, message, _ := strings.Cut(string(read(path)), "\n\n")
	tree, _ := open(keys, []byte(message))
	lines := strings.Split(head, "\n")
	entry, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(lines[1], "extra "))
	check(err)
	index, err := strconv.ParseInt(strings.TrimPrefix(lines[2], "index "), 10, 64)
	check(err)
	proof := tlog.RecordProof{}
	for _, line := range lines[3:] {
		proof = append(proof, hash64(line))
	}
	check(tlog.CheckRecord(proof, tree.N, tree.Hash, index, tlog.RecordHash(entry)))
	fmt.Println(index)
}

func consistency(keys, older, newer, path string) {
	first, _ := open(keys, read(older))
	second, _ := open(keys, read(newer))
	proof := tlog.TreeProof{}
	for _, line := range strings.Fields(string(read(path))) {
		data, err := hex.DecodeString(line)
		check(err)
		var hash tlog.Hash
		copy(hash[:], data)
		proof = append(proof, hash)
	}
	check(tlog.CheckTree(proof, second.N, second.Hash, first.N, first.Hash))
	fmt.Println(first.N, second.N)
}

// files is the tile reader of the library, whose paths include the height; those of C2SP do not.
type files struct{ folder string }

func (f files) Height() int { return 8 }

func (f files) ReadTiles(tiles []tlog.Tile) (all [][]byte, err error) {
	for _, tile := range tiles {
		data, err := os.ReadFile(filepath.Join(f.folder, strings.Replace(tile.Path(), "tile/8/", "tile/", 1)))
		if err != nil {
			return nil, err
		}
		all = append(all, data)
	}
	return all, nil
}

func (f files) SaveTiles([]tlog.Tile, [][]byte) {}

func tiles(keys, folder string) {
	tree, _ := open(keys, read(filepath.Join(folder, "checkpoint")))
	hashes := tlog.TileHashReader(tree, files{folder})
	for start := int64(0); start < tree.N; start += 256 {
		tile := tlog.Tile{H: 8, L: -1, N: start / 256, W: 256}
		if tree.N-start < 256 {
			tile.W = int(tree.N - start)
		}
		data := read(filepath.Join(folder, strings.Replace(tile.Path(), "tile/8/data/", "tile/entries/", 1)))
		for seq := start; seq < start+int64(tile.W); seq++ {
			size := int(binary.BigEndian.Uint16(data)) + 2
			found, err := hashes.ReadHashes([]int64{tlog.StoredHashIndex(0, seq)})
			check(err)
			leaf := tlog.RecordHash(data[2:size])
			if !bytes.Equal(found[0][:], leaf[:]) {
				check(fmt.Errorf("entry %d is not the leaf", seq))
			}
			data = data[size:]
		}
	}
	fmt.Println(tree.N)
}

func main() {
	switch arguments := os.Args[2:]; os.Args[1] {
	case "note":
		_, text := open(arguments[0], read(arguments[1]))
		fmt.Print(text)
	case "sign":
		signer, err := note.NewSigner(strings.TrimSpace(string(read(arguments[0]))))
		check(err)
		message, err := note.Sign(&note.Note{Text: string(read(arguments[1]))}, signer)
		check(err)
		os.Stdout.Write(message)
	case "inclusion":
		inclusion(arguments[0], arguments[1])
	case "consistency":
		consistency(arguments[0], arguments[1], arguments[2], arguments[3])
	case "tiles":
		tiles(arguments[0], arguments[1])
	default:
		check(fmt.Errorf("unknown command %q", os.Args[1]))
	}
}
