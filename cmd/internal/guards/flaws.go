package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// listedNames returns the flaws on the page: the first cell of each row of its tables.
func listedNames(page string) []string {
	var flaws []string
	for _, line := range strings.Split(page, "\n") {
		if cells := cellsOf(line); cells != nil {
			flaws = append(flaws, cells[0])
		}
	}
	return flaws
}

// cellsOf returns the cells of a table row, or nil for a table's header and for lines outside of tables.
func cellsOf(line string) []string {
	if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| flaw |") {
		return nil
	}
	cells := strings.Split(strings.Trim(line, "| "), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells
}

// withTests returns the page with the tests from the marks in the last column.
func withTests(page string, guards []guard) string {
	tests := map[string][]testName{}
	for _, g := range guards {
		for _, f := range g.flaws {
			tests[f] = append(tests[f], g.tests...)
		}
	}
	lines := strings.Split(page, "\n")
	for i, line := range lines {
		cells := cellsOf(line)
		if len(cells) < 2 {
			continue
		}
		found := tests[cells[0]]
		slices.SortFunc(found,
			func(a, b testName) int { return cmp.Compare(a.String(), b.String()) })
		var names []string
		for _, t := range slices.Compact(found) {
			names = append(names, fmt.Sprintf("`%s` (%s)", t.name, t.dir))
		}
		lines[i] = fmt.Sprintf("| %s | %s | %s |", cells[0], cells[1], strings.Join(names, ", "))
	}
	return strings.Join(lines, "\n")
}
