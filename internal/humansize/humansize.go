// Package humansize parses sizes such as "5 GB" as Salt does (salt.utils.stringutils.human_to_bytes).
package humansize

import (
	"math/big"
	"strconv"
	"strings"
	"unicode"
)

// Bytes returns the number of bytes that a text means, or 0 if it is invalid. unit applies to text without a unit. K,
// M, G, T, P, E, Z and Y alone or with iB are powers of 1024; with B they are powers of 1000 if metric is set.
func Bytes(text, unit string, metric bool) *big.Int {
	text = strings.TrimSpace(text)
	end := strings.IndexFunc(text, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	if end < 0 {
		end = len(text)
	}
	if rest := strings.TrimLeftFunc(text[end:], unicode.IsSpace); rest != "" {
		unit = rest
	}
	unit = strings.ToLower(unit)
	const letters = "bkmgtpezy"
	if unit == "" || !strings.Contains(letters, unit[:1]) {
		return new(big.Int)
	}
	power, base := strings.IndexByte(letters, unit[0]), int64(1024)
	switch rest := unit[1:]; {
	case power > 0 && rest == "b":
		if metric {
			base = 1000
		}
	case power == 0 && rest != "", rest != "" && rest != "ib":
		return new(big.Int)
	}
	factor := new(big.Int).Exp(big.NewInt(base), big.NewInt(int64(power)), nil)
	if n, ok := new(big.Int).SetString(text[:end], 10); ok {
		return factor.Mul(factor, n)
	}
	f, err := strconv.ParseFloat(text[:end], 64)
	if err != nil {
		return new(big.Int)
	}
	n, _ := new(big.Float).Mul(big.NewFloat(f), new(big.Float).SetInt(factor)).Int(nil)
	return n
}
