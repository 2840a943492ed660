package main

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// printTable prints a row for each package, and one for all.
func printTable(w io.Writer, rooms []room) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "package\tcode\tcomments\tdensity\tunexported\tone word\tcode > %d\tcomments "+
		"> %d\t\n", codeColumns, commentColumns)
	all := room{dir: "all"}
	for _, r := range rooms {
		printRow(t, r)
		all.code, all.comments = all.code+r.code, all.comments+r.comments
		all.functions, all.oneWord = all.functions+r.functions, all.oneWord+r.oneWord
		all.longCode, all.longComments = all.longCode+r.longCode, all.longComments+r.longComments
	}
	printRow(t, all)
	return t.Flush()
}

func printRow(w io.Writer, r room) {
	fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%d\t%s\t%d\t%d\t\n", r.dir, r.code, r.comments,
		percent(r.comments, r.code),
		r.functions, percent(r.oneWord, r.functions), r.longCode, r.longComments)
}

// printLong prints the lines beyond a limit. It returns an error if there are any.
func printLong(w io.Writer, rooms []room) error {
	found := 0
	for _, r := range rooms {
		for _, line := range r.long {
			found++
			if _, err := fmt.Fprintln(w, line); err != nil {
				return err
			}
		}
	}
	if found > 0 {
		return fmt.Errorf("%d lines are too long: code has %d columns, a comment %d", found,
			codeColumns, commentColumns)
	}
	return nil
}

// percent returns n as a share of all, or "-" if all is 0.
func percent(n, all int) string {
	if all == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(all))
}

// printSample prints n comments: those with the lowest hashes of the seed and their declaration. Unlike a draw by
// index, this does not change when comments are added elsewhere or moved to another line.
func printSample(w io.Writer, rooms []room, n int, seed uint64) error {
	type drawn struct {
		text
		hash uint64
	}
	var all []drawn
	for _, r := range rooms {
		for _, t := range r.texts {
			h := fnv.New64a()
			fmt.Fprintf(h, "%s\x00%d", t.declaration, seed)
			all = append(all, drawn{t, h.Sum64()})
		}
	}
	slices.SortFunc(all, func(a, b drawn) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), strings.Compare(a.declaration, b.declaration))
	})
	all = all[:min(n, len(all))]
	slices.SortFunc(all,
		func(a, b drawn) int { return strings.Compare(a.declaration, b.declaration) })
	for _, d := range all {
		if _, err := fmt.Fprintf(w, "%s  %s\n    %s\n", d.position, d.declaration,
			strings.ReplaceAll(d.body, "\n", "\n    ")); err != nil {
			return err
		}
	}
	return nil
}
