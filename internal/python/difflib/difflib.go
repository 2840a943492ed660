// Package difflib compares lists of lines as Python's difflib does. It finds the same matching blocks, and so creates
// exactly the same unified diffs. Salt shows such diffs to its users.
//
// It contains only what diffs need: no junk functions and no ratios. It includes Python's heuristic for popular
// lines: in texts of at least 200 lines, a line that makes up more than a hundredth of the text cannot begin a match.
// Python's source: Lib/difflib.py.
package difflib

import (
	"slices"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/sorting"
)

// block is a run of equal lines.
type block struct{ a, b, size int }

// opcode describes how a[i1:i2] becomes b[j1:j2].
type opcode struct {
	tag            byte // '=' equal, 'r' replace, 'd' delete, 'i' insert
	i1, i2, j1, j2 int
}

// matcher compares two lists of lines. Each distinct line has a number, so that comparisons are cheap.
type matcher struct {
	a, b []int
	// where has, for each line that may begin a match, its positions in b. The index is the line's number.
	where [][]int
	// lengths and next hold the length of the match that ends at each position of b: for the previous line of a and
	// for the current one.
	lengths, next []int
}

func newMatcher(a, b []string) *matcher {
	numbers := make(map[string]int, len(a)+len(b))
	number := func(lines []string) []int {
		list := make([]int, len(lines))
		for i, l := range lines {
			n, ok := numbers[l]
			if !ok {
				n = len(numbers)
				numbers[l] = n
			}
			list[i] = n
		}
		return list
	}
	m := &matcher{a: number(a), b: number(b)}
	m.where = make([][]int, len(numbers))
	for j, n := range m.b {
		m.where[n] = append(m.where[n], j)
	}
	if len(b) >= 200 {
		most := len(b)/100 + 1
		for n := range m.where {
			if len(m.where[n]) > most {
				m.where[n] = nil
			}
		}
	}
	m.lengths, m.next = make([]int, len(b)+1), make([]int, len(b)+1)
	return m
}

// longest returns the longest match within a[alo:ahi] and b[blo:bhi]. Of several it returns the one that begins
// earliest in a, then in b.
func (m *matcher) longest(alo, ahi, blo, bhi int) block {
	best := block{alo, blo, 0}
	var before, now []int // the positions in lengths and next that are set
	for i := alo; i < ahi; i++ {
		now = now[:0]
		for _, j := range m.where[m.a[i]] {
			if j < blo {
				continue
			}
			if j >= bhi {
				break
			}
			k := m.lengths[j] + 1 // lengths[j] belongs to position j-1
			m.next[j+1] = k
			now = append(now, j+1)
			if k > best.size {
				best = block{i - k + 1, j - k + 1, k}
			}
		}
		for _, j := range before {
			m.lengths[j] = 0
		}
		m.lengths, m.next = m.next, m.lengths
		before, now = now, before
	}
	for _, j := range before {
		m.lengths[j] = 0
	}
	// Popular lines cannot begin a match but may extend one.
	for best.a > alo && best.b > blo && m.a[best.a-1] == m.b[best.b-1] {
		best.a, best.b, best.size = best.a-1, best.b-1, best.size+1
	}
	for best.a+best.size < ahi && best.b+best.size < bhi && m.a[best.a+best.size] == m.b[best.b+best.size] {
		best.size++
	}
	return best
}

// blocks returns the matching blocks in ascending order, with adjacent blocks joined and an empty block at the end.
func (m *matcher) blocks() []block {
	var found []block
	queue := [][4]int{{0, len(m.a), 0, len(m.b)}}
	for len(queue) > 0 {
		q := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		x := m.longest(q[0], q[1], q[2], q[3])
		if x.size == 0 {
			continue
		}
		found = append(found, x)
		if q[0] < x.a && q[2] < x.b {
			queue = append(queue, [4]int{q[0], x.a, q[2], x.b})
		}
		if x.a+x.size < q[1] && x.b+x.size < q[3] {
			queue = append(queue, [4]int{x.a + x.size, q[1], x.b + x.size, q[3]})
		}
	}
	sorting.Stable(found, func(x, y block) int { return x.a - y.a })
	var joined []block
	for _, x := range found {
		if n := len(joined); n > 0 && joined[n-1].a+joined[n-1].size == x.a && joined[n-1].b+joined[n-1].size == x.b {
			joined[n-1].size += x.size
			continue
		}
		joined = append(joined, x)
	}
	return append(joined, block{len(m.a), len(m.b), 0})
}

func (m *matcher) opcodes() []opcode {
	var codes []opcode
	i, j := 0, 0
	for _, x := range m.blocks() {
		switch {
		case i < x.a && j < x.b:
			codes = append(codes, opcode{'r', i, x.a, j, x.b})
		case i < x.a:
			codes = append(codes, opcode{'d', i, x.a, j, x.b})
		case j < x.b:
			codes = append(codes, opcode{'i', i, x.a, j, x.b})
		}
		i, j = x.a+x.size, x.b+x.size
		if x.size > 0 {
			codes = append(codes, opcode{'=', x.a, i, x.b, j})
		}
	}
	return codes
}

// grouped returns the opcodes in groups that are separated by at least 2n equal lines. Each group has up to n equal
// lines before and after.
func (m *matcher) grouped(n int) [][]opcode {
	codes := m.opcodes()
	if len(codes) == 0 {
		return nil
	}
	if c := &codes[0]; c.tag == '=' {
		c.i1, c.j1 = max(c.i1, c.i2-n), max(c.j1, c.j2-n)
	}
	if c := &codes[len(codes)-1]; c.tag == '=' {
		c.i2, c.j2 = min(c.i2, c.i1+n), min(c.j2, c.j1+n)
	}
	var groups [][]opcode
	var group []opcode
	for _, c := range codes {
		if c.tag == '=' && c.i2-c.i1 > 2*n {
			group = append(group, opcode{c.tag, c.i1, min(c.i2, c.i1+n), c.j1, min(c.j2, c.j1+n)})
			groups = append(groups, group)
			group = nil
			c.i1, c.j1 = max(c.i1, c.i2-n), max(c.j1, c.j2-n)
		}
		group = append(group, c)
	}
	if len(group) > 0 && (len(group) != 1 || group[0].tag != '=') {
		groups = append(groups, group)
	}
	return groups
}

// Unified returns the unified diff of two lists of lines with three lines of context, or "" if the lists are equal.
// The lines include their line ends. from and to are the names in the diff's header.
func Unified(a, b []string, from, to string) string {
	return strings.Join(UnifiedLines(a, b, from, to), "")
}

// UnifiedLines returns the lines of the diff. Header lines end with a line feed; the others end as the given lines
// do.
func UnifiedLines(a, b []string, from, to string) []string { return UnifiedContext(a, b, from, to, 3) }

// UnifiedContext is like UnifiedLines with n lines of context.
func UnifiedContext(a, b []string, from, to string, n int) []string {
	if slices.Equal(a, b) {
		return nil
	}
	var out []string
	for i, group := range newMatcher(a, b).grouped(n) {
		if i == 0 {
			out = append(out, "--- "+from+"\n", "+++ "+to+"\n")
		}
		first, last := group[0], group[len(group)-1]
		out = append(out, "@@ -"+span(first.i1, last.i2)+" +"+span(first.j1, last.j2)+" @@\n")
		for _, c := range group {
			if c.tag == '=' {
				out = mark(out, " ", a[c.i1:c.i2])
				continue
			}
			if c.tag != 'i' {
				out = mark(out, "-", a[c.i1:c.i2])
			}
			if c.tag != 'd' {
				out = mark(out, "+", b[c.j1:c.j2])
			}
		}
	}
	return out
}

func mark(out []string, by string, lines []string) []string {
	for _, l := range lines {
		out = append(out, by+l)
	}
	return out
}

// span formats a range of lines for a hunk's header.
func span(start, stop int) string {
	switch n := stop - start; n {
	case 1:
		return strconv.Itoa(start + 1)
	case 0:
		return strconv.Itoa(start) + ",0"
	default:
		return strconv.Itoa(start+1) + "," + strconv.Itoa(n)
	}
}
