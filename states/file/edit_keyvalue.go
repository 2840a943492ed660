//go:build unix

package file

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/modkit/pycodec"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states"
)

var keyvalueDef = states.Def{Name: "keyvalue", Params: []modules.Param{nameParam, {Name: "key", Optional: true}, {Name: "value", Optional: true},
	{Name: "key_values", Optional: true}, {Name: "separator", Default: "="}, {Name: "append_if_not_found", Default: false},
	{Name: "prepend_if_not_found", Default: false}, {Name: "search_only", Default: false}, {Name: "show_changes", Default: true}, {Name: "ignore_if_missing", Default: false},
	{Name: "count", Default: int64(1)}, {Name: "uncomment", Optional: true}, {Name: "key_ignore_case", Default: false},
	{Name: "value_ignore_case", Default: false}, {Name: "create_if_missing", Default: false}}, Run: keyvalue}

// keyValues is one run of file.keyvalue.
type keyValues struct {
	*job
	pairs     *pyobj.Dict
	left      map[string]int64 // how often each key is still wanted; negative is any number
	separator string
	content   []string
	diff      []string
	changes   int
}

// keyPairs returns the wanted keys and values. If there are none, wrong is the reason.
func (j *job) keyPairs() (pairs *pyobj.Dict, wrong string) {
	many := pyobj.From(j.ordered("key_values"))
	d, ok := many.(*pyobj.Dict)
	switch {
	case j.Value("key") != nil && j.Value("value") != nil:
		if ok {
			return nil, "file.keyvalue can not combine key_values with key and value"
		}
		return pyobj.NewDict(pyobj.Str(pyobj.From(j.ordered("key"))), pyobj.From(j.ordered("value"))), ""
	case !pyobj.Truth(many):
		return nil, "file.keyvalue key and value not supplied and key_values is empty"
	case !ok:
		return nil, "file.keyvalue key and value not supplied and key_values is not a dictionary"
	}
	return d, ""
}

func keyvalue(ctx context.Context, c *states.Call) (*states.Result, error) {
	j := on(ctx, c)
	name, ret := j.begin()
	if name == "" {
		return fail(ret, "Must provide name to file.keyvalue")
	}
	pairs, wrong := j.keyPairs()
	if wrong != "" {
		return fail(ret, wrong)
	}
	atEnd, atTop := c.Bool("append_if_not_found"), c.Bool("prepend_if_not_found")
	b, err := os.ReadFile(j.Path(name))
	switch {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist) && c.Bool("create_if_missing"):
		atEnd = true
	default:
		return ret.As(states.OutcomeOf(c.Bool("ignore_if_missing")), "unable to open "+name)
	}
	text, err := pycodec.UTF8(b)
	if err != nil {
		return nil, err
	}
	k := &keyValues{job: j, pairs: pairs, separator: c.Str("separator")}
	if err := k.edit(text); err != nil {
		return nil, err
	}
	switch {
	case atEnd:
		k.append()
	case atTop:
		k.prepend()
	}
	if k.changes == 0 {
		return ret.As(states.True, "")
	}
	show := c.Bool("show_changes")
	if show {
		ret.Changes["diff"] = strings.Join(k.diff, "")
	}
	if c.Test() {
		comment := "File " + name + " is set to be changed (" + strconv.Itoa(k.changes) + " lines)"
		if show {
			comment += "\nPredicted diff:\n\r\t\t" + strings.Join(k.diff, "\r\t\t")
		}
		return ret.As(states.None, comment)
	}
	if err := atomicfile.Replace(j.Path(name), []byte(strings.Join(k.content, "")), 0o644); err != nil {
		return fail(ret, name+" not writable")
	}
	return ret.As(states.True, "Changed "+strconv.Itoa(k.changes)+" lines")
}

// edit goes through the lines of the file.
func (k *keyValues) edit(text string) error {
	count, err := k.Int("count")
	if err != nil {
		return err
	}
	k.left = map[string]int64{}
	for key := range k.pairs.All() {
		s, ok := key.(string)
		if !ok && text != "" {
			return &modules.TypeError{Msg: "startswith first arg must be str or a tuple of str, not " + pyobj.TypeName(key)}
		}
		k.left[s] = count
	}
	foldKeys := k.Bool("key_ignore_case")
	for _, line := range textLines(text) {
		bare := k.uncommented(line)
		commented := len(bare) < len(line)
		seen := bare
		if foldKeys {
			seen = strings.ToLower(seen)
		}
		for key, value := range k.pairs.All() {
			key := key.(string)
			wanted := key
			if foldKeys {
				wanted = strings.ToLower(wanted)
			}
			if strings.HasPrefix(seen, wanted) {
				if k.separator == "" {
					return raise("ValueError", "empty separator")
				}
				line = k.line(line, key, wanted, value, commented, foldKeys)
			}
		}
		k.content = append(k.content, line)
	}
	return nil
}

// textLines returns the lines of a text with their line ends: \n, \r\n or \r.
func textLines(s string) []string {
	var lines []string
	for s != "" {
		end := strings.IndexAny(s, "\r\n") + 1
		switch {
		case end == 0:
			end = len(s)
		case s[end-1] == '\r' && strings.HasPrefix(s[end:], "\n"):
			end++
		}
		lines, s = append(lines, s[:end]), s[end:]
	}
	return lines
}

// uncommented returns a line without leading comment characters, or without leading blanks if uncomment is not set
// (str.lstrip).
func (k *keyValues) uncommented(line string) string {
	if chars, ok := k.Value("uncomment").(string); ok {
		return strings.TrimLeft(line, chars)
	}
	return strings.TrimLeft(line, " \t\n\r\v\f\x1c\x1d\x1e\x1f\u0085\u00a0")
}

// line returns the new text of a line that begins with a key.
func (k *keyValues) line(line, key, wanted string, value any, commented, foldKeys bool) string {
	work := line
	if commented {
		work = k.uncommented(line)
	}
	name, have, ok := strings.Cut(work, k.separator)
	if !ok {
		return line
	}
	if name != wanted && (!foldKeys || strings.ToLower(name) != wanted) {
		return line
	}
	have, want := pytext.Strip(have), pytext.Strip(pyobj.Str(value))
	same := have == want
	if k.Bool("value_ignore_case") {
		have, want = strings.ToLower(have), strings.ToLower(want)
		same = have == want
	}
	left := k.left[key]
	change := left == 0
	if commented {
		change = left > 0
		same = same || left <= 0
	}
	if !same || change {
		k.diff = append(k.diff, "- "+line)
		line = ""
		if left != 0 {
			line = name + k.separator + pyobj.Str(value) + "\n"
			if _, ok := value.(string); ok {
				k.diff = append(k.diff, "+ "+line)
			} else {
				k.diff = append(k.diff, "+ "+pytext.StripRight(line)+" (from "+pyobj.TypeName(value)+" type)\n")
			}
		}
		k.changes++
	}
	if left > 0 {
		k.left[key]--
	}
	return line
}

// missing returns new lines for the keys that were not found in the file.
func (k *keyValues) missing() []string {
	var lines []string
	for key, value := range k.pairs.All() {
		name, _ := key.(string)
		if k.left[name] > 0 {
			lines = append(lines, pyobj.Str(key)+k.separator+pyobj.Str(value)+"\n")
		}
	}
	k.changes += len(lines)
	return lines
}

func (k *keyValues) append() {
	lines := k.missing()
	if lines == nil {
		return
	}
	k.content = append(k.content, lines...)
	k.diff = append(k.diff, "- <EOF>\n")
	for _, l := range lines {
		k.diff = append(k.diff, "+ "+l)
	}
	k.diff = append(k.diff, "+ <EOF>\n")
}

func (k *keyValues) prepend() {
	lines := k.missing()
	if lines == nil {
		return
	}
	slices.Reverse(lines) // Salt puts each before the others
	diff := []string{"  <SOF>\n"}
	for _, l := range lines {
		diff = append(diff, "+ "+l)
	}
	k.diff = append(diff, k.diff...)
	k.content = append(lines, k.content...)
}
