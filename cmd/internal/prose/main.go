// Prose reports how the packages of this repository are written: the lines of comments and of code, the unexported
// functions with a one-word name, and the lines that are too long for two columns. It only parses files; it skips
// tests, generated files and testdata.
//
// With -sample it prints comments drawn with a fixed seed instead. The draw depends on a comment's declaration and
// not on its line, so that the same seed selects the same declarations before and after a rewrite.
//
// With -long it prints the lines beyond the limits instead, and exits with status 1 if there are any. In this way the
// packages that comply continue to do so (see the Makefile's lint).
//
// Usage:
//
//	go run ./cmd/internal/prose [-long] [-sample n] [-seed s] [directory | directory/...] ...
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	sample := flag.Int("sample", 0, "print this many comments instead of the table")
	seed := flag.Uint64("seed", 1, "the seed of the draw")
	long := flag.Bool("long", false,
		"print the lines over the limits instead, and fail if there are any")
	flag.Parse()
	patterns := flag.Args()
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	if err := run(os.Stdout, patterns, *long, *sample, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(1)
	}
}

// run prints the table of the packages that match the patterns, their long lines, or a sample of their comments.
func run(w io.Writer, patterns []string, long bool, sample int, seed uint64) error {
	dirs, err := expandPatterns(patterns)
	if err != nil {
		return err
	}
	var rooms []room
	for _, dir := range dirs {
		r, err := readRoom(dir)
		if err != nil {
			return err
		}
		if r.code > 0 {
			rooms = append(rooms, r)
		}
	}
	if long {
		return printLong(w, rooms)
	}
	if sample > 0 {
		return printSample(w, rooms, sample, seed)
	}
	return printTable(w, rooms)
}
