package cfn

import (
	"encoding/base64"
	"fmt"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules/pyobj"
)

// Bits of a file's mode.
const (
	modeType    = 0o170000
	modeSymlink = 0o120000
	modeRegular = 0o100000
	modePerm    = 0o7777
)

func (c *compiler) files(n node) {
	list, err := n.entries()
	if c.fail(err) {
		return
	}
	for _, e := range list {
		c.fail(c.file(e))
	}
}

func (c *compiler) file(e entry) error {
	if !path.IsAbs(e.key) {
		return e.wrong("must be an absolute path")
	}
	if err := c.unknown(e.node, "content", "source", "encoding", "owner", "group", "mode"); err != nil {
		return err
	}
	attributes, link, err := fileAttributes(e.node)
	if err != nil {
		return err
	}
	content, hasContent, err := fileContent(e.node)
	if err != nil {
		return err
	}
	source, hasSource := e.child("source")
	switch {
	case link && !hasContent:
		return e.wrong("is a symbolic link by its mode, so content must be its target")
	case link && !utf8.ValidString(content):
		return e.wrong("is a symbolic link whose target is not text")
	case link:
		c.parent(e.key)
		c.add(e.key, "file", "symlink", arg{"name", e.key}, arg{"target", content}, arg{"force", true})
		return nil
	case hasContent:
		c.parent(e.key)
		c.written(e.key, content, attributes)
		return nil
	case hasSource:
		from, err := source.text()
		if err != nil {
			return err
		}
		c.parent(e.key)
		args := []arg{{"name", e.key}, {"source", from}, {"skip_verify", true}, {"show_changes", false}}
		c.add(e.key, "file", "managed", append(args, attributes...)...)
		return nil
	}
	return e.wrong("needs content or source")
}

// parent creates the directory of a file as heat-cfntools does: owned by root, with the permissions of the umask.
func (c *compiler) parent(file string) {
	dir := path.Dir(file)
	if dir == "/" || c.dirs[dir] {
		return
	}
	c.dirs[dir] = true
	c.add(dir, "file", "directory", arg{"name", dir}, arg{"makedirs", true}, arg{"follow_symlinks", true})
}

// written writes a file with exactly this content. file.managed changes line ends by its own rules; content that it
// would change is written as base64.
func (c *compiler) written(name, content string, attributes []arg) {
	base := []arg{{"name", name}}
	newline := strings.HasSuffix(content, "\n")
	slot := strings.HasPrefix(content, "__slot__:") // Salt would evaluate it as a slot
	if !slot && utf8.ValidString(content) && asLines(content, newline) == content {
		args := append(base, arg{"contents", content}, arg{"contents_newline", newline}, arg{"show_changes", false})
		c.add(name, "file", "managed", append(args, attributes...)...)
		return
	}
	// Set the permissions first, since the content may be secret.
	c.add(name, "file", "managed", append(append(base, arg{"replace", false}), attributes...)...)
	c.add(name, "file", "decode", arg{"name", name}, arg{"encoded_data", base64.StdEncoding.EncodeToString([]byte(content))},
		arg{"checksum", "sha256"})
}

// asLines returns the content that file.managed would write for its argument contents.
func asLines(content string, newline bool) string {
	var b strings.Builder
	for _, line := range pytext.SplitLines(content, false) {
		b.WriteString(line)
		b.WriteByte('\n')
	}
	if newline {
		return b.String()
	}
	return strings.TrimRight(strings.TrimRight(b.String(), "\n"), "\r")
}

// fileContent returns the content of an entry. Maps and lists become JSON.
func fileContent(n node) (content string, ok bool, err error) {
	v, ok := n.child("content")
	if !ok {
		return "", false, nil
	}
	switch x := v.v.(type) {
	case string:
		content = x
	case *pyobj.Dict, *pyobj.List:
		if content, err = pyjson.Format(x, pyjson.Options{Indent: 4, ASCII: true}); err != nil {
			return "", false, v.wrong("cannot be written as JSON: %v", err)
		}
	default:
		if content, err = v.text(); err != nil {
			return "", false, v.mustBe("a text or a map")
		}
	}
	encoding, has := n.child("encoding")
	if !has {
		return content, true, nil
	}
	switch name, err := encoding.text(); {
	case err != nil:
		return "", false, err
	case name == "base64":
		b, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(content), ""))
		if err != nil {
			return "", false, v.wrong("is not base64: %v", err)
		}
		return string(b), true, nil
	case name != "plain":
		return "", false, encoding.wrong("must be plain or base64, not %q", name)
	}
	return content, true, nil
}

// fileAttributes returns owner, group and mode as arguments of file.managed.
func fileAttributes(n node) (args []arg, link bool, err error) {
	for _, pair := range [...][2]string{{"owner", "user"}, {"group", "group"}} {
		if v, ok := n.child(pair[0]); ok {
			name, err := v.text()
			if err != nil {
				return nil, false, err
			}
			args = append(args, arg{pair[1], name})
		}
	}
	v, ok := n.child("mode")
	if !ok {
		return args, false, nil
	}
	text, err := v.text()
	if err != nil {
		return nil, false, err
	}
	mode, err := strconv.ParseUint(strings.TrimPrefix(strings.ToLower(pytext.Strip(text)), "0o"), 8, 32)
	if err != nil {
		return nil, false, v.wrong("must be octal digits, not %q", text)
	}
	switch mode & modeType {
	case 0, modeRegular:
	case modeSymlink:
		link = true
	default:
		return nil, false, v.wrong("is of a kind of file that cannot be made: %q", text)
	}
	return append(args, arg{"mode", fmt.Sprintf("%04o", mode&modePerm)}), link, nil
}
