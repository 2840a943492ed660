package render

import (
	"crypto/hmac"
	cryptorand "crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"math"
	"math/big"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/hashname"
	"github.com/brine-salt/brine/internal/humansize"
	"github.com/brine-salt/brine/internal/python/pybase64"
	"github.com/brine-salt/brine/internal/python/pyre"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/strftime"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states/render/jinja"
)

// bytesArg implements salt.utils.stringutils.to_bytes: it encodes a text as UTF-8.
func bytesArg(v any) ([]byte, error) {
	switch v := v.(type) {
	case []byte:
		return v, nil
	case string:
		return []byte(v), nil
	case pyobj.Markup:
		return []byte(v), nil
	}
	return nil, raiseAs("TypeError", "expected str, bytes, or bytearray not <class '"+pyobj.TypeName(v)+"'>")
}

// hexDigest returns the hash of b in hexadecimal.
func hexDigest(h hash.Hash, b []byte) string {
	h.Write(b)
	return hex.EncodeToString(h.Sum(nil))
}

// plainFilter turns a function into a filter without further arguments.
func plainFilter(name string, fn func(v any) (any, error)) jinja.Filter {
	return func(_ *jinja.Run, v any, a jinja.Args) (any, error) {
		if err := a.None(pythonName(name)); err != nil {
			return nil, err
		}
		return fn(v)
	}
}

// pythonName returns the name of a filter's Python function, which appears in errors about arguments.
func pythonName(name string) string {
	switch name {
	case "avg":
		return "lst_avg"
	case "base64_encode":
		return "base64_b64encode"
	case "base64_decode":
		return "base64_b64decode"
	case "is_text_file":
		return "is_text"
	case "is_bin_file":
		return "is_binary"
	case "md5", "sha1", "sha256", "sha512":
		return name + "_digest"
	case "sequence":
		return "ensure_sequence_filter"
	case "skip":
		return "skip_filter"
	case "str_to_num":
		return "to_num"
	case "to_snake_case":
		return "camel_to_snake_case"
	case "uuid":
		return "uuid_"
	}
	return name
}

// textFilter returns one of the filters of salt.utils.stringutils, hashutils, dateutils and yamlencoding, or nil.
func textFilter(name string) jinja.Filter {
	switch name {
	case "to_bytes":
		return func(_ *jinja.Run, v any, _ jinja.Args) (any, error) {
			b, err := bytesArg(v)
			return b, err
		}
	case "to_num", "str_to_num":
		return plainFilter(name, toNum)
	case "is_hex":
		return plainFilter(name, func(v any) (any, error) {
			s, err := textArg(v)
			if err != nil {
				return false, nil
			}
			_, err = jinja.ParseInt(s, 16)
			return err == nil, nil
		})
	case "random_str":
		return func(_ *jinja.Run, v any, _ jinja.Args) (any, error) {
			n, ok := v.(int64)
			if !ok {
				return nil, raiseAs("TypeError", "'"+pyobj.TypeName(v)+"' object cannot be interpreted as an integer")
			}
			if n < 0 {
				return nil, raiseAs("ValueError", "negative argument not allowed")
			}
			// Salt would return any length. A megabyte is enough for a password.
			b := make([]byte, min(n, 1<<20))
			_, _ = cryptorand.Read(b) // it never fails
			return base64.StdEncoding.EncodeToString(b)[:len(b)], nil
		}
	case "contains_whitespace":
		return plainFilter(name, func(v any) (any, error) {
			items, err := jinja.Collect(v)
			if err != nil {
				return nil, err
			}
			for _, x := range items {
				s, err := textArg(x)
				if err != nil {
					return nil, jinja.LacksAttribute(x, "isspace")
				}
				if s != "" && strings.TrimFunc(s, isSpace) == "" {
					return true, nil
				}
			}
			return false, nil
		})
	case "human_to_bytes":
		return humanToBytes
	case "check_whitelist_blacklist":
		return whitelistFilter
	case "to_snake_case":
		return func(r *jinja.Run, v any, a jinja.Args) (any, error) {
			if err := a.None(pythonName(name)); err != nil {
				return nil, err
			}
			return snakeCase(r, v)
		}
	case "to_camelcase":
		return camelCase
	case "date_format", "strftime":
		return dateFormat
	case "base64_encode":
		return plainFilter(name, func(v any) (any, error) {
			b, err := bytesArg(v)
			return base64.StdEncoding.EncodeToString(b), err
		})
	case "base64_decode":
		return plainFilter(name, func(v any) (any, error) {
			b, err := bytesArg(v)
			if err != nil {
				return nil, err
			}
			out, err := pybase64.Decode(string(b))
			if err != nil {
				return nil, raiseAs("Error", err.Error())
			}
			// Decoded bytes that are not UTF-8 are returned as bytes.
			if utf8.Valid(out) {
				return string(out), nil
			}
			return out, nil
		})
	case "md5", "sha1", "sha256", "sha512":
		return plainFilter(name, func(v any) (any, error) {
			b, err := bytesArg(v)
			return hexDigest(hashname.New(name), b), err
		})
	case "hmac":
		return func(_ *jinja.Run, v any, a jinja.Args) (any, error) {
			args, err := a.Bind("hmac_signature", []string{"shared_secret", "challenge_hmac"})
			if err != nil {
				return nil, err
			}
			sum, err := computeMAC(v, args[0])
			if err != nil {
				return nil, err
			}
			want, err := bytesArg(args[1])
			// The values are compared in constant time, as in hmac.compare_digest.
			return subtle.ConstantTimeCompare([]byte(base64.StdEncoding.EncodeToString(sum)), want) == 1, err
		}
	case "hmac_compute":
		return func(_ *jinja.Run, v any, a jinja.Args) (any, error) {
			args, err := a.Bind("hmac_compute", []string{"shared_secret"})
			if err != nil {
				return nil, err
			}
			sum, err := computeMAC(v, args[0])
			return hex.EncodeToString(sum), err
		}
	case "random_hash", "rand_str":
		return randomHash
	case "yaml_dquote":
		return plainFilter(name, func(v any) (any, error) {
			s, err := jinja.Str(v)
			return asciiQuoted(s), err
		})
	case "yaml_squote":
		return plainFilter(name, func(v any) (any, error) {
			s, err := jinja.Str(v)
			return yaml.SingleQuoted(s), err
		})
	case "yaml_encode":
		return plainFilter(name, yamlEncode)
	case "uuid":
		return plainFilter(name, func(v any) (any, error) {
			b, err := bytesArg(v)
			return uuid5(string(b)), err
		})
	}
	return nil
}

// asciiQuoted returns a double quoted YAML scalar in which everything beyond ASCII is escaped, as PyYAML writes it.
func asciiQuoted(s string) string {
	var b strings.Builder
	for _, c := range doubleQuoted(s) {
		switch {
		case c < utf8.RuneSelf:
			b.WriteRune(c)
		case c == 0xa0:
			b.WriteString(`\_`)
		case c <= 0xff:
			fmt.Fprintf(&b, `\x%02X`, c)
		case c <= 0xffff:
			fmt.Fprintf(&b, `\u%04X`, c)
		default:
			fmt.Fprintf(&b, `\U%08X`, c)
		}
	}
	return b.String()
}

// isSpace implements Python's str.isspace for one character.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

// computeMAC returns the HMAC-SHA256 of a value under a secret.
func computeMAC(v, secret any) ([]byte, error) {
	msg, err := bytesArg(v)
	if err != nil {
		return nil, err
	}
	key, err := bytesArg(secret)
	if err != nil {
		return nil, err
	}
	h := hmac.New(sha256.New, key)
	h.Write(msg)
	return h.Sum(nil), nil
}

// uuid5 returns the name-based UUID of a text in the namespace GLOBAL_UUID of salt.utils.jinja.
func uuid5(s string) string {
	space := []byte{0x91, 0x63, 0x3e, 0xbf, 0x1c, 0x86, 0x5e, 0x33, 0x93, 0x5a, 0x28, 0x06, 0x1f, 0x4b, 0x48, 0x0e}
	h := hashname.New("sha1")
	// UUID version 5: SHA-1 of the namespace and the name.
	h.Write(space)
	h.Write([]byte(s))
	b := h.Sum(nil)[:16]
	b[6], b[8] = b[6]&0x0f|0x50, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// toNum returns a text as an integer, else as a float, else unchanged.
func toNum(v any) (any, error) {
	if s, err := textArg(v); err == nil {
		if n, err := jinja.ParseInt(s, 10); err == nil {
			// Only text is tried as a float; a float is cut to an integer below.
			return n, nil
		}
		if f, err := jinja.Float(v); err == nil {
			return f, nil
		}
		return v, nil
	}
	return jinja.Int(v)
}

// humanToBytes implements salt.utils.stringutils.human_to_bytes: "1.5G" as a number of bytes.
func humanToBytes(_ *jinja.Run, v any, a jinja.Args) (any, error) {
	args, err := a.Bind("human_to_bytes", []string{"default_unit", "handle_metric"}, "B", false)
	if err != nil {
		return nil, err
	}
	metric, err := jinja.Truth(args[1])
	if err != nil {
		return nil, err
	}
	s, err := jinja.Str(v)
	if err != nil {
		return nil, err
	}
	return pyobj.Int(humansize.Bytes(s, pyobj.Str(args[0]), metric)), nil
}

// whitelistFilter implements check_whitelist_blacklist. The lists contain patterns; a single text counts as a list of
// one.
func whitelistFilter(_ *jinja.Run, v any, a jinja.Args) (any, error) {
	args, err := a.Bind("check_whitelist_blacklist", []string{"whitelist", "blacklist"}, nil, nil)
	if err != nil {
		return nil, err
	}
	s, notText := textArg(v)
	var set, match [2]bool
	// index 0 is the whitelist, 1 the blacklist.
	for i, arg := range args {
		if set[i], err = jinja.Truth(arg); err != nil {
			return nil, err
		}
		if !set[i] {
			continue
		}
		list := []any{arg}
		if _, err := textArg(arg); err != nil {
			if list, err = jinja.Collect(arg); err != nil {
				kind := [2]string{"whitelist", "blacklist"}[i]
				return nil, raiseAs("TypeError", "Expecting iterable "+kind+", but got "+pyobj.TypeName(arg)+" ("+pyobj.Str(arg)+")")
			}
		}
		// Each member is a glob, a regular expression or the text itself.
		for _, x := range list {
			if expr, err := textArg(x); err == nil && notText == nil && pyre.Expr(s, expr) {
				match[i] = true
			}
		}
	}
	return (!set[0] || match[0]) && !match[1], nil
}

// snakeCase implements camel_to_snake_case: an underscore goes before a capital that begins a word.
func snakeCase(r *jinja.Run, v any) (any, error) {
	first, err := r.Subscript(v, int64(0))
	if err != nil {
		return nil, err
	}
	s, err := textArg(v)
	if err != nil {
		return nil, jinja.LacksAttribute(first, "lower")
	}
	chars := []rune(s)
	if len(chars) == 0 {
		return nil, raiseAs("IndexError", "string index out of range")
	}
	out := []rune{unicode.ToLower(chars[0])}
	for i := 1; i < len(chars); i++ {
		// A capital begins a word after a small letter, or before one in a run of capitals.
		if unicode.IsUpper(chars[i]) && (unicode.IsLower(chars[i-1]) || i+1 < len(chars) && unicode.IsLower(chars[i+1])) {
			out = append(out, '_')
		}
		out = append(out, unicode.ToLower(chars[i]))
	}
	return string(out), nil
}

// camelCase implements snake_to_camel_case.
func camelCase(r *jinja.Run, v any, a jinja.Args) (any, error) {
	args, err := a.Bind("snake_to_camel_case", []string{"uppercamel"}, false)
	if err != nil {
		return nil, err
	}
	upper, err := jinja.Truth(args[0])
	if err != nil {
		return nil, err
	}
	s, err := textArg(v)
	if err != nil {
		return nil, jinja.LacksAttribute(v, "split")
	}
	words := strings.Split(s, "_")
	for i, w := range words {
		if i > 0 || upper {
			words[i] = jinja.Capitalize(w)
		}
	}
	return strings.Join(words, ""), nil
}

// dateFormat formats a time with strftime. None is the current time. A number, or a text with a number, is seconds
// since 1970. Other texts would need timelib, which Salt does not include.
func dateFormat(_ *jinja.Run, v any, a jinja.Args) (any, error) {
	args, err := a.Bind("strftime", []string{"format"}, "%Y-%m-%d")
	if err != nil {
		return nil, err
	}
	format, err := textArg(args[0])
	if err != nil {
		return nil, err
	}
	at, ok := v.(time.Time)
	switch {
	case ok && at.Location() != pytext.DateZone: // Salt treats a date without a time as a text
	case v == nil:
		at = time.Now()
	default:
		f, err := jinja.Float(v)
		if err != nil || math.IsNaN(f) || math.Abs(f) > 1e11 {
			return nil, raiseAs("RuntimeError", "Unable to parse "+pyobj.Str(v)+". Consider installing timelib")
		}
		// The time is rounded to microseconds, as in Python's datetime.
		whole := math.Floor(f)
		at = time.Unix(int64(whole), int64(math.Round((f-whole)*1e6))*1000)
	}
	return strftime.Naive(format, at), nil
}

// randomHash hashes a random number up to the given one.
func randomHash(_ *jinja.Run, v any, a jinja.Args) (any, error) {
	args, err := a.Bind("random_hash", []string{"hash_type"}, nil)
	if err != nil {
		return nil, err
	}
	name := "md5"
	if yes, err := jinja.Truth(args[0]); err != nil {
		return nil, err
	} else if yes {
		name = pyobj.Str(args[0])
	}
	h := hashname.New(name)
	if h == nil {
		return nil, raiseAs("AttributeError", "module 'hashlib' has no attribute '"+name+"'")
	}
	n, err := jinja.Int(v)
	if err != nil {
		return nil, err
	}
	// Salt's randint includes the upper bound.
	top, ok := n.(int64)
	if !ok || top < 0 || top == math.MaxInt64 {
		return nil, raiseAs("ValueError", "empty range for randrange()")
	}
	x, err := cryptorand.Int(cryptorand.Reader, big.NewInt(top+1))
	if err != nil {
		return nil, err
	}
	return hexDigest(h, []byte(x.String())), nil
}

// yamlEncode writes a scalar as YAML. Collections are an error, as in Salt.
func yamlEncode(v any) (any, error) {
	switch x := v.(type) {
	case string:
		return asciiQuoted(x), nil
	case nil, bool, int64, float64, *big.Int:
		s, err := yaml.MarshalStyle(x, yaml.Style{Flow: yaml.FlowAll})
		// In PyYAML a document that is a scalar ends with "...", which is removed.
		return strings.TrimSuffix(strings.TrimSuffix(s, "...\n"), "\n"), err
	case []byte:
		return base64.StdEncoding.EncodeToString(x) + "\n", nil
	}
	switch name := pyobj.TypeName(v); name {
	case "list", "tuple", "dict", "set":
		return nil, raiseAs("TypeError", "yaml_encode() only works with YAML scalar data; failed for <class '"+name+"'>")
	}
	return nil, raiseAs("RepresenterError", "('cannot represent an object', "+pyobj.Repr(v)+")")
}
