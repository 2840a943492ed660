package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// build builds the programs of the commit below dir/old, and those of the working tree and the simulated minions below
// dir/new.
func build(ctx context.Context, commit, dir string) error {
	tree := filepath.Join(dir, "tree")
	if err := checkOut(ctx, commit, dir, tree); err != nil {
		return err
	}
	defer os.RemoveAll(tree)
	programs := "brine-minion brine-master"
	if err := buildPrograms(ctx, tree, filepath.Join(dir, "old", "bin"), programs); err != nil {
		return err
	}
	return buildPrograms(ctx, ".", filepath.Join(dir, "new", "bin"), programs+" brine-swarm")
}

// checkOut writes the files of a commit to tree. It leaves the repository alone, as its index is a file in dir.
func checkOut(ctx context.Context, commit, dir, tree string) error {
	git := func(args ...string) (string, error) {
		return output(ctx, ".", []string{"GIT_INDEX_FILE=" + filepath.Join(dir, "index")}, "git",
			args...)
	}
	hash, err := git("rev-parse", "--verify", "--end-of-options", commit+"^{commit}")
	if err != nil {
		return fmt.Errorf("cannot find the commit %q: %w", commit, err)
	}
	if _, err := git("read-tree", strings.TrimSpace(hash)); err != nil {
		return fmt.Errorf("cannot read the commit %s: %w", commit, err)
	}
	if _, err := git("checkout-index", "--all", "--prefix="+tree+"/"); err != nil {
		return fmt.Errorf("cannot write the files of the commit %s: %w", commit, err)
	}
	return nil
}

// buildPrograms builds with the tree's own Makefile, as its releases are built.
func buildPrograms(ctx context.Context, tree, out, programs string) error {
	// The variables of the make that runs this program are not for that one.
	_, err := output(ctx, tree, []string{"MAKEFLAGS="}, "make", "build", "BIN="+out,
		"PROGRAMS="+programs)
	if err != nil {
		return fmt.Errorf("cannot build programs in %s: %w", tree, err)
	}
	return nil
}

// output runs a program that is not measured. Its error contains what the program wrote to standard error.
func output(ctx context.Context, dir string, env []string, name string,
	args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	// make then ends what it has started.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = patience
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, args[0], err, tail(errs.String()))
	}
	return string(out), nil
}

// tail returns the end of a program's output.
func tail(text string) string {
	text = strings.TrimSpace(text)
	return text[max(0, len(text)-2000):]
}
