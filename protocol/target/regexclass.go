package target

import (
	"sort"
	"sync"
	"unicode"
)

// classText returns the content of brackets for one of Python's classes. It is spelled out, because the engines
// define letters and spaces differently.
func classText(class rune, flags rxFlags) string {
	ascii := flags&flagASCII != 0
	switch class {
	case 'd':
		if ascii {
			return `0-9`
		}
		return `\p{Nd}`
	case 'D':
		if ascii {
			return complement([]runeRange{{'0', '9'}})
		}
		return `\P{Nd}`
	case 'w':
		if ascii {
			return `0-9A-Z_a-z`
		}
		return `\p{L}\p{N}_`
	case 'W':
		if ascii {
			return complement([]runeRange{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}})
		}
		return notWord()
	case 's':
		if ascii {
			return `\x09-\x0d\x20`
		}
		return `\x09-\x0d\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}`
	case 'S':
		if ascii {
			return complement([]runeRange{{9, 13}, {' ', ' '}})
		}
		return complement([]runeRange{{9, 13}, {0x1c, 0x20}, {0x85, 0x85}, {0xa0, 0xa0}, {0x1680, 0x1680},
			{0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}})
	}
	return ""
}

// complement writes everything outside of the sorted ranges.
func complement(ranges []runeRange) string {
	var e emitter
	from := rune(0)
	// put writes one range unless it is empty.
	put := func(lo, hi rune) {
		if lo > hi {
			return
		}
		e.writeChar(lo)
		e.out.WriteByte('-')
		e.writeChar(hi)
	}
	for _, r := range ranges {
		// Go patterns cannot contain surrogates, and strings never do.
		if from < 0xd800 && r.lo > 0xdfff {
			put(from, 0xd7ff)
			from = 0xe000
		}
		put(from, r.lo-1)
		from = r.hi + 1
	}
	if from < 0xd800 {
		put(from, 0xd7ff)
		from = 0xe000
	}
	put(from, unicode.MaxRune)
	return e.out.String()
}

// notWord is the complement of \w. It is needed only if brackets contain \W and something else.
var notWord = sync.OnceValue(func() string {
	ranges := []runeRange{{'_', '_'}}
	for _, table := range []*unicode.RangeTable{unicode.L, unicode.N} {
		for _, r := range table.R16 {
			ranges = appendStride(ranges, rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
		for _, r := range table.R32 {
			ranges = appendStride(ranges, rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
	}
	sort.Slice(ranges, func(i, j int) bool { return ranges[i].lo < ranges[j].lo })
	// Joining adjacent ranges makes the text shorter.
	merged := ranges[:1]
	for _, r := range ranges[1:] {
		if last := &merged[len(merged)-1]; r.lo <= last.hi+1 {
			last.hi = max(last.hi, r.hi)
		} else {
			merged = append(merged, r)
		}
	}
	return complement(merged)
})

// appendStride appends a range of Unicode's tables. If the range has gaps, it appends each member.
func appendStride(ranges []runeRange, lo, hi, stride rune) []runeRange {
	if stride == 1 {
		return append(ranges, runeRange{lo, hi})
	}
	for r := lo; r <= hi; r += stride {
		ranges = append(ranges, runeRange{r, r})
	}
	return ranges
}
