package master_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/brine-salt/brine/internal/testkit/gobuild"
)

// TestEmbeddingProgram checks that the program in docs/embedding.md has at most 30 lines and builds.
func TestEmbeddingProgram(t *testing.T) {
	b, err := os.ReadFile("../docs/embedding.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(b), "```go\n")
	program, _, ok2 := strings.Cut(rest, "```")
	if !ok || !ok2 || !strings.HasPrefix(program, "package main\n") {
		t.Fatal("no program")
	}
	if n := strings.Count(program, "\n"); n > 30 {
		t.Errorf("it has %d lines", n)
	}
	if testing.Short() {
		return
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "main.go")
	if err := os.WriteFile(file, []byte(program), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := gobuild.Build("", filepath.Join(dir, "program"), file); err != nil {
		t.Fatal(err)
	}
}

// TestEqualMastersProgram checks that two processes of the program in docs/ha.md, over one database, serve as one
// master with the same key.
func TestEqualMastersProgram(t *testing.T) {
	if testing.Short() {
		return
	}
	b, err := os.ReadFile("../docs/ha.md")
	if err != nil {
		t.Fatal(err)
	}
	part := func(head string) string {
		_, rest, ok := strings.Cut(string(b), "```"+head+"\n")
		text, _, ok2 := strings.Cut(rest, "```")
		if !ok || !ok2 {
			t.Fatal("no", head)
		}
		return text
	}
	dir := t.TempDir()
	file, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
	if err := os.WriteFile(file, []byte(part("go ha/main.go")), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := gobuild.Build("", program, file); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS == "windows" {
		return // Windows has no SIGTERM and no sh
	}
	make := exec.Command("sh", "-e", "-c", part("sh ha/key.sh"))
	make.Dir = dir
	if out, err := make.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var said []string
	for range 2 {
		cmd := exec.Command(program, "-db", filepath.Join(dir, "db"), "-key", filepath.Join(dir, "sealing.key"), "-publish", "-1", "-request", "-1")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		cmd.Stderr = &log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		said = append(said, line)
		if err != nil {
			t.Error(err)
		}
		defer func() {
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("%v\n%s", err, &log)
			}
		}()
	}
	if !strings.HasPrefix(said[0], "ready ") || said[0] != said[1] {
		t.Errorf("%q", said)
	}
}
