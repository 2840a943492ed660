//go:build interop

package pillar_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/brine-salt/brine/internal/modkit/runcmd"
	"github.com/brine-salt/brine/internal/testkit/testsalt"
	"github.com/brine-salt/brine/internal/testkit/testserver"
	"github.com/brine-salt/brine/interop/oracle"
)

// TestStockTrees compiles every tree with stock Salt and with this package. Both must return the same data in the
// same order, and the same errors.
func TestStockTrees(t *testing.T) {
	scratch := t.TempDir()
	cmd := exec.Command(testsalt.Python(t), "-B", "testdata/stock.py", scratch)
	cmd.Env = append(os.Environ(), "PYTHONHASHSEED=0")
	logFile, err1 := os.Create(filepath.Join(scratch, "oracle.log"))
	cmd.Stderr = logFile
	in, err2 := cmd.StdinPipe()
	out, err3 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, err3, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
		logFile.Close()
	})
	web := httptest.NewServer(http.HandlerFunc(answerHTTP))
	t.Cleanup(web.Close)
	lines := bufio.NewReaderSize(out, 1<<20)
	book := oracle.OpenBook(t, answers)
	match := oracle.Chosen()
	for _, tr := range trees(t) {
		book.Know("trees", tr.key)
		if !match.MatchString(tr.name) || !book.Asks("trees", tr.key) {
			continue
		}
		t.Run(tr.name, func(t *testing.T) {
			dir := t.TempDir()
			names := strings.NewReplacer(dir, "@ROOT@", web.URL, "@HTTP@")
			runner := &oracle.Recorder{Real: &runcmd.Runner{}, Dir: dir, Names: names,
				Servers: &testserver.Servers{T: t}}
			if tr.head["keys"] == true {
				keys(t, filepath.Join(dir, "keys"))
			}
			var said []any
			for _, q := range tr.questions(t, dir, web.URL) {
				theirs := ask(t, in, lines, q)
				tr.judge(t, q, theirs, compile(t, q, runner))
				one := map[string]any{"pillar": theirs.Pillar}
				if theirs.Error != "" {
					one = map[string]any{"error": theirs.Error}
				}
				said = append(said, one)
			}
			kept := oracle.Kept{Key: tr.key, Case: tr.name}
			if runner.Take(&kept, "") {
				kept.Stock = oracle.Pack(said, names)
			}
			book.Keep(t, "trees", kept)
		})
	}
	book.Save(t)
}

// keys creates a GnuPG directory.
func keys(t *testing.T, dir string) {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = exec.Command("gpgconf", "--homedir", dir, "--kill", "all").Run() })
	if out, err := exec.Command("gpg", "--homedir", dir, "--batch", "--import", "testdata/key.asc").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func ask(t *testing.T, in io.Writer, out *bufio.Reader, q question) answer {
	t.Helper()
	b, err := json.Marshal(q)
	if err == nil {
		_, err = in.Write(append(b, '\n'))
	}
	var line []byte
	if err == nil {
		line, err = out.ReadBytes('\n')
	}
	var a answer
	if err == nil {
		err = json.Unmarshal(line, &a)
	}
	if err != nil {
		t.Fatalf("stock Salt answered %q: %v", line, err)
	}
	return a
}
