package cpmod

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/brine-salt/brine/internal/python/fnmatch"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func push(ctx context.Context, c *modules.Call) (any, error) {
	return pushOne(ctx, c, c.Str("path"), c.Str("upload_path"), c.Bool("keep_symlinks"), c.Bool("remove_source"))
}

// pushOne sends one file. Whatever cannot be sent is false, as in stock.
func pushOne(ctx context.Context, c *modules.Call, source, upload string, keep, remove bool) (any, error) {
	if strings.Contains(source, "../") || !filepath.IsAbs(source) {
		return false, nil
	}
	local := c.Path(source)
	if !keep {
		if real, err := filepath.EvalSymlinks(local); err == nil {
			local = real
			if c.Root == "" {
				source = real
			}
		}
	}
	if !isFile(local) {
		return false, nil
	}
	name := source
	if upload != "" {
		if strings.Contains(upload, "../") {
			return false, nil
		}
		name = upload
	}
	name = path.Clean(strings.TrimLeft(filepath.ToSlash(name[len(filepath.VolumeName(name)):]), "/"))
	if c.Files == nil {
		return nil, modules.Errorf("cannot send %s: this program has no master", source)
	}
	ok, err := c.Files.Send(ctx, local, name)
	if err != nil || !ok {
		return false, err
	}
	if remove {
		if err := os.Remove(local); err != nil {
			c.Logger().Error("Cannot remove file", "file", source, "err", err)
			return false, nil
		}
	}
	return true, nil
}

func pushDir(ctx context.Context, c *modules.Call) (any, error) {
	root, upload := c.Str("path"), c.Str("upload_path")
	if strings.Contains(root, "../") || !filepath.IsAbs(root) {
		return false, nil
	}
	if real, err := filepath.EvalSymlinks(c.Path(root)); err == nil && c.Root == "" {
		root = real
	}
	if isFile(c.Path(root)) {
		return pushOne(ctx, c, root, upload, false, false)
	}
	names, err := below(c, root)
	if err != nil || len(names) == 0 {
		return false, err
	}
	for _, name := range names {
		to := upload
		if upload != "" {
			to = "/" + strings.Trim(upload, "/") + "/" + strings.Trim(strings.ReplaceAll(name, root, ""), "/")
		}
		ok, err := pushOne(ctx, c, name, to, false, false)
		if err != nil || ok != any(true) {
			return ok, err
		}
	}
	return true, nil
}

// below lists the files below a directory, links to files included, that match the call's glob.
func below(c *modules.Call, root string) ([]string, error) {
	pattern, filtered := "", c.Value("glob") != nil
	if filtered {
		pattern = c.Str("glob")
	}
	var names []string
	top := c.Path(root)
	err := filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && name == top:
			return filepath.SkipAll
		case err != nil || d.IsDir() || d.Type()&fs.ModeSymlink != 0 && isDir(name):
			return nil // Python's os.walk passes over what it cannot read
		case filtered && !fnmatch.Match(pattern, d.Name()):
			return nil
		case len(names) == maxWalk:
			return modules.Errorf("cannot send %s: more than %d files", root, maxWalk)
		}
		names = append(names, root+strings.TrimPrefix(name, top))
		return nil
	})
	return names, err
}

func recv(_ context.Context, c *modules.Call) (any, error) {
	list, ok := c.Value("files").(map[string]any)
	if !ok {
		return nil, modules.NoAttribute(c.Value("files"), "items")
	}
	dest, ret := c.Str("dest"), map[string]any{}
	for name, data := range list {
		final := dest
		switch base := name[strings.LastIndexByte(name, '/')+1:]; {
		case isDir(c.Path(dest)):
			final = join(dest, base)
		case base == dest[strings.LastIndexByte(dest, '/')+1:]:
		case !isDir(c.Path(dirname(dest))) || dirname(dest) == "":
			return "Destination unavailable", nil
		}
		text, ok := data.([]byte)
		if !ok {
			text = []byte(pytext.Str(data))
		}
		ret[final] = os.WriteFile(c.Path(final), text, 0o666) == nil
	}
	return ret, nil
}

func recvChunked(_ context.Context, c *modules.Call) (any, error) {
	dest := c.Str("dest")
	if c.Value("chunk") == nil {
		return makeDir(c, dest)
	}
	data, err := chunk(c)
	if err != nil {
		return nil, err
	}
	flags := os.O_WRONLY | os.O_CREATE
	if c.Bool("append") {
		flags |= os.O_APPEND
	} else {
		flags |= os.O_TRUNC
	}
	f, err := os.OpenFile(c.Path(dest), flags, 0o666)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeDirs(c.Path(dirname(dest))); err != nil {
			return failed(c, err)
		}
		f, err = os.OpenFile(c.Path(dest), flags, 0o666)
	}
	if err != nil {
		return failed(c, err)
	}
	if c.Bool("compressed") {
		var broken string
		if data, broken, err = unpack(data); err != nil || broken != "" {
			f.Close()
			c.SetRetcode(1)
			return broken, err
		}
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return failed(c, err)
	}
	if !c.Bool("append") && c.Value("mode") != nil {
		mode, err := c.Int("mode")
		if err != nil {
			return nil, err
		}
		if err := chmod(c.Path(dest), mode); err != nil {
			return failed(c, err)
		}
	}
	return true, nil
}

// makeDir creates an empty directory. An existing directory is not an error.
func makeDir(c *modules.Call, dest string) (any, error) {
	switch info, err := os.Stat(c.Path(dest)); {
	case err == nil && info.IsDir():
		return true, nil
	case err == nil:
		return "Path exists and is a file", nil
	}
	if err := makeDirs(c.Path(dest)); err != nil {
		return failed(c, err)
	}
	return true, nil
}

// failed returns the result of the call for an error of the operating system: its text.
func failed(c *modules.Call, err error) (any, error) {
	c.SetRetcode(1)
	if text, _ := modules.OSErrorText(err); text != "" {
		return text, nil
	}
	return err.Error(), nil
}

// maxChunk bounds an unpacked piece of a file.
const maxChunk = 256 << 20

// chunk decodes the base64 of the piece of a file that the call carries.
func chunk(c *modules.Call) ([]byte, error) {
	text, _ := c.Value("chunk").([]byte)
	if text == nil {
		text = []byte(c.Str("chunk"))
	}
	// Python's b64decode drops characters outside its alphabet.
	text = bytes.Map(func(r rune) rune {
		if r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '+' || r == '/' || r == '=') {
			return r
		}
		return -1
	}, text)
	data, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil {
		return nil, &modules.PythonError{Type: "Error", Msg: "Incorrect padding"}
	}
	return data, nil
}

// unpack decompresses a piece of a file. broken is the text of Python's OSError for invalid data; data that ends too
// early is an error of another type, EOFError.
func unpack(data []byte) (out []byte, broken string, err error) {
	if len(data) == 0 {
		return nil, "", nil
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if errors.Is(err, gzip.ErrHeader) || !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		return nil, "Not a gzipped file (" + pytext.Repr(data[:min(2, len(data))]) + ")", nil
	}
	if err == nil {
		out, err = io.ReadAll(io.LimitReader(r, maxChunk+1))
	}
	switch {
	case errors.Is(err, gzip.ErrChecksum):
		return nil, "CRC check failed", nil
	case err != nil:
		return nil, "", &modules.PythonError{Type: "EOFError", Msg: "Compressed file ended before the end-of-stream marker was reached"}
	case len(out) > maxChunk:
		return nil, "", modules.Errorf("cannot receive a piece of more than %d bytes", maxChunk)
	}
	return out, "", nil
}
