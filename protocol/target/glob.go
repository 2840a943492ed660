package target

import (
	"strings"
	"unicode/utf8"
)

// Glob reports whether s matches the whole pattern by the rules of Python's fnmatch.fnmatch on POSIX: case
// sensitive; "*" matches any characters, "?" one character; "[abc]", "[a-z]" and "[!a]" are sets; there is no
// escape character. It takes at most len(pattern) * len(s) steps.
func Glob(pattern, s string) bool {
	if !strings.ContainsAny(pattern, "*?[") {
		return pattern == s
	}
	return compileGlob(pattern).match(s)
}

// A glob is a compiled pattern: pieces in order, or the exact text of a pattern without wildcards.
type glob struct {
	exact  bool
	text   string
	pieces []piece
}

// The kinds of pieces: one character, any character, any number of characters, a set, and an empty set.
type pieceKind uint8

const (
	pieceRune pieceKind = iota
	pieceAny
	pieceStar
	pieceSet
	pieceNever
)

// A piece is one part of a pattern.
type piece struct {
	kind   pieceKind
	r      rune
	negate bool
	ranges []runeRange
}

// A runeRange is a range of characters, both ends included.
type runeRange struct{ lo, hi rune }

// matches reports whether a piece other than a star matches one character.
func (p *piece) matches(r rune) bool {
	switch p.kind {
	case pieceRune:
		return p.r == r
	case pieceAny:
		return true
	case pieceSet:
		for _, x := range p.ranges {
			if x.lo <= r && r <= x.hi {
				return !p.negate
			}
		}
		return p.negate
	}
	return false
}

// compileGlob compiles a pattern. Every string is a valid pattern.
func compileGlob(pattern string) *glob {
	if !strings.ContainsAny(pattern, "*?[") {
		return &glob{exact: true, text: pattern}
	}
	g := &glob{}
	pat := []rune(pattern)
	for i := 0; i < len(pat); {
		c := pat[i]
		i++
		switch c {
		case '*':
			// Consecutive stars are stored as one, since each costs time.
			if n := len(g.pieces); n == 0 || g.pieces[n-1].kind != pieceStar {
				g.pieces = append(g.pieces, piece{kind: pieceStar})
			}
		case '?':
			g.pieces = append(g.pieces, piece{kind: pieceAny})
		case '[':
			end := setEnd(pat, i)
			// A bracket that is not closed matches itself.
			if end < 0 {
				g.pieces = append(g.pieces, piece{kind: pieceRune, r: '['})
				continue
			}
			g.pieces = append(g.pieces, compileSet(pat[i:end]))
			i = end + 1
		default:
			g.pieces = append(g.pieces, piece{kind: pieceRune, r: c})
		}
	}
	return g
}

// setEnd returns the index of the bracket that closes the set whose content starts at i, or -1 if it is not closed.
func setEnd(pat []rune, i int) int {
	j := i
	// A "!" and a "]" at the beginning belong to the content.
	if j < len(pat) && pat[j] == '!' {
		j++
	}
	if j < len(pat) && pat[j] == ']' {
		j++
	}
	for j < len(pat) && pat[j] != ']' {
		j++
	}
	if j >= len(pat) {
		return -1
	}
	return j
}

// compileSet compiles the content of brackets. fnmatch splits it at hyphens that form ranges and drops empty ranges
// ("z-a"). The rest may be empty, which never matches, or a lone "!", which matches any character.
func compileSet(stuff []rune) piece {
	chunks := setChunks(stuff)
	if len(chunks) == 1 && len(chunks[0]) == 0 {
		return piece{kind: pieceNever}
	}
	p := piece{kind: pieceSet}
	if chunks[0][0] == '!' {
		if len(chunks) == 1 && len(chunks[0]) == 1 {
			return piece{kind: pieceAny}
		}
		p.negate = true
		chunks[0] = chunks[0][1:]
		if len(chunks[0]) == 0 && len(chunks) > 1 {
			// Only dropped ranges lead here ("z-a!-x"): the hyphen then comes first and is an ordinary character.
			chunks = chunks[1:]
			chunks[0] = append([]rune{'-'}, chunks[0]...)
		}
	}
	// Neighbouring chunks are the two ends of a range.
	for k, chunk := range chunks {
		for x, r := range chunk {
			if x == len(chunk)-1 && k+1 < len(chunks) {
				p.ranges = append(p.ranges, runeRange{r, chunks[k+1][0]})
				continue
			}
			if x == 0 && k > 0 {
				continue // the end of the previous range
			}
			p.ranges = append(p.ranges, runeRange{r, r})
		}
	}
	return p
}

// setChunks splits the content of brackets at the hyphens of its ranges, as fnmatch.translate does.
func setChunks(stuff []rune) [][]rune {
	var chunks [][]rune
	i, k := 0, 1
	if len(stuff) > 0 && stuff[0] == '!' {
		k = 2
	}
	// The first character of a range cannot be a hyphen, nor can the character after its end.
	for {
		for k < len(stuff) && stuff[k] != '-' {
			k++
		}
		if k >= len(stuff) {
			break
		}
		chunks = append(chunks, stuff[i:k:k])
		i = k + 1
		k += 3
	}
	if rest := stuff[i:]; len(rest) > 0 || len(chunks) == 0 {
		chunks = append(chunks, rest)
	} else {
		chunks[len(chunks)-1] = append(chunks[len(chunks)-1], '-')
	}
	// A range whose ends are in the wrong order is empty, so the chunks around it are joined.
	for k := len(chunks) - 1; k > 0; k-- {
		left, right := chunks[k-1], chunks[k]
		if left[len(left)-1] > right[0] {
			merged := append(append([]rune{}, left[:len(left)-1]...), right[1:]...)
			chunks[k-1] = merged
			chunks = append(chunks[:k], chunks[k+1:]...)
		}
	}
	return chunks
}

// match walks through s once and backtracks only to the last star. That is enough for globs, and takes at most
// len(pattern) * len(s) steps.
func (g *glob) match(s string) bool {
	if g.exact {
		return g.text == s
	}
	p, star, retry := 0, -1, 0
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case p < len(g.pieces) && g.pieces[p].kind == pieceStar:
			star, retry = p, i
			p++
			continue
		case p < len(g.pieces) && g.pieces[p].matches(r):
			p++
			i += size
		// Let the last star match one more character.
		case star >= 0:
			_, back := utf8.DecodeRuneInString(s[retry:])
			retry += back
			p, i = star+1, retry
		default:
			return false
		}
	}
	// Stars at the end also match the empty string.
	for p < len(g.pieces) && g.pieces[p].kind == pieceStar {
		p++
	}
	return p == len(g.pieces)
}
