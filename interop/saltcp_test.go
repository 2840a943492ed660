//go:build interop

package interop

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testkit/freeport"
)

// TestCopy runs stock's salt-cp and brine's on brine's master with its minion, and compares their output, their exit
// codes and the resulting files on the minion. The master's event bus is on ports (ipc_mode: tcp).
func TestCopy(t *testing.T) {
	t.Parallel()
	p := freeport.Ports(t, 2)
	s := newSite(t, "zeromq", fmt.Sprintf("auto_accept: true\nsalt_cp_chunk_size: 1000\nipc_mode: tcp\ntcp_master_pub_port: %d\ntcp_master_pull_port: %d\n", p[0], p[1]))
	m := &ourMaster{site: s, t: t, root: t, line: "3007", id: "web1", events: p[0]}
	m.up()
	mark := m.bus.mark()
	start(t, ours("salt-minion"), "-c", s.minion(t, "web1", ""))
	m.bus.wait(mark, "salt/minion/web1/start")
	start(t, ours("salt-minion"), "-c", s.minion(t, "db1", ""))
	m.bus.wait(mark, "salt/minion/db1/start")

	src := s.dir + "/src"
	write(t, src+"/text", "one\r\ntwo\n")
	write(t, src+"/tree/a", "a\n")
	write(t, src+"/tree/sub/big", strings.Repeat("0123456789", 250)) // two pieces and a half
	write(t, src+"/tree/sub/even", strings.Repeat("x", 1000))
	write(t, src+"/tree/sub/nothing", "")
	if err := os.MkdirAll(src+"/tree/empty/deep", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(src+"/tree/a", 0o4751); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a", src+"/tree/link"); err != nil {
		t.Fatal(err)
	}
	write(t, s.dir+"/binary", "\xff\xfe\x00")

	// For both programs the minion has its files below dest, which is emptied before each run.
	dest := s.dir + "/dest"
	for _, args := range [][]string{
		{"*", src + "/text", src + "/tree/a", dest},
		{"web1", src + "/text", src + "/none", dest + "/none/below"},
		{"web1", src + "/tree", dest},
		{"-C", "web1", src + "/text", dest + "/into/"},
		{"-C", "-n", "web1", src + "/tree", dest + "/new"},
		{"-C", "web1", src + "/tree", src + "/text", dest},
		{"-C", "web1", src + "/tree/sub/big", dest},
		{"-C", "-L", "web1,db1", s.dir + "/binary", dest + "/listed"},
		{"-G", "role:tester", src + "/text", dest + "/grain"},
		{"-C", "web1", src + "/none", dest},
		{"-C", "nobody", src + "/text", dest},
		{"--out", "json", "--out-indent", "-1", "web1", src + "/text", dest + "/text"},
	} {
		run := func(program string) (string, int, map[string]string) {
			for _, dir := range []string{dest, dest + "/into"} {
				if err := os.RemoveAll(dir); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Mkdir(dest, 0o755); err != nil {
				t.Fatal(err)
			}
			out, code := output(t, program, append([]string{"-c", s.dir + "/etc"}, args...)...)
			// Stock prints minions in the order of their answers, or of a set.
			return sortedBlocks(out), code, contents(t, dest)
		}
		out1, code1, files1 := run(stock(t, "3007", "salt-cp"))
		out2, code2, files2 := run(ours("salt-cp"))
		if diff := cmp.Diff(out1, out2); diff != "" || code1 != code2 {
			t.Errorf("%s: exit codes %d and %d (-stock +ours):\n%s", strings.Join(args, " "), code1, code2, diff)
		}
		if diff := cmp.Diff(files1, files2); diff != "" {
			t.Errorf("%s: files (-stock +ours):\n%s", strings.Join(args, " "), diff)
		}
	}
	if _, code := output(t, ours("salt-cp"), "-c", s.dir+"/etc", "web1", s.dir+"/binary", dest); code != 1 {
		t.Errorf("a file that is no text: exit code %d", code)
	}
}

// sortedBlocks sorts the output for several minions or files.
func sortedBlocks(out string) string {
	blocks := regexp.MustCompile(`(?m)^(\S.*:)$`).ReplaceAllString(out, "\x00$1")
	list := strings.Split(blocks, "\x00")
	for i, b := range list {
		lines := strings.SplitAfter(b, "\n")
		pairs := regexp.MustCompile(`(?m)^    /.*:\n(        .*\n)*`).FindAllString(b, -1)
		if len(pairs) > 1 {
			slices.Sort(pairs)
			list[i] = strings.Join(lines[:2], "") + strings.Join(pairs, "")
		}
	}
	slices.Sort(list)
	return strings.Join(list, "")
}

// contents returns the files below a directory with their modes and texts.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, name)
		out[rel] = info.Mode().String()
		if info.Mode().IsRegular() {
			b, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			out[rel] += " " + string(b)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
