package trove

import "unicode"

// postgresNames are the rules of trove.common.db.postgresql.models: users and passwords may be any text.
var postgresNames = nameRules{maxSchema: 63, maxUser: 63, schema: isPostgresSchema, text: isAnyText, host: isAnyText}

func isAnyText(string) bool { return true }

// isPostgresSchema matches ^[\u0001-\u007F\u0080-\uFFFF]+[^\s]$ as Python does, where "$" also matches before a final
// line break.
func isPostgresSchema(s string) bool {
	runes := []rune(s)
	fits := func(r []rune) bool {
		n := len(r) - 1
		if n < 1 || isPythonSpace(r[n]) {
			return false
		}
		for _, x := range r[:n] {
			if x == 0 || x > 0xffff {
				return false
			}
		}
		return true
	}
	n := len(runes)
	return fits(runes) || n > 0 && runes[n-1] == '\n' && fits(runes[:n-1])
}

func isPythonSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }
