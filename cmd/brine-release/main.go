// Command brine-release creates repositories of signed versions for brine-update. docs/update.md describes the
// roles and their keys.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/brine-salt/brine/cmd/internal/repository"
)

const usage = `usage: brine-release key FILE...                                  make private keys
       brine-release init -repo DIR -keys DIR [-threshold N]       make an empty repository
       brine-release add -repo DIR -keys DIR -channel stable -version 1.2.3 PLATFORM=FILE...
       brine-release add -repo DIR -keys DIR -channel stable -version 1.2.3 -programs DIR
       brine-release remove -repo DIR -keys DIR -channel stable -version 1.2.3
       brine-release refresh -repo DIR -keys DIR                   sign the timestamp again
       brine-release rotate -repo DIR -keys DIR -old-keys DIR [-threshold N]   new keys
`

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

const exitUsage = 64

func run(args []string, out, errs io.Writer) int {
	if len(args) == 0 || args[0] == "-h" || args[0] == "--help" {
		fmt.Fprint(out, usage)
		return 0
	}
	life := repository.DefaultLifetimes
	r := &repository.Repository{Life: life, Now: time.Now}
	flags := flag.NewFlagSet("brine-release", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.Usage = func() { fmt.Fprint(errs, usage); flags.PrintDefaults() }
	flags.StringVar(&r.Dir, "repo", "", "the directory of the repository")
	flags.StringVar(&r.Keys, "keys", "", "the directory with the private keys: root.1.pem, targets.pem, snapshot.pem, timestamp.pem, stable.pem, edge.pem")
	flags.IntVar(&r.Threshold, "threshold", 1, "how many root keys must sign")
	old := flags.String("old-keys", "", "the directory with the root keys of before")
	channel := flags.String("channel", "stable", "the channel: stable or edge")
	version := flags.String("version", "", "the version, such as 1.2.3")
	programs := flags.String("programs", "", "a directory with a directory for each platform, as make release writes it")
	flags.DurationVar(&r.Life.Root, "root-life", life.Root, "how long the keys are valid")
	flags.DurationVar(&r.Life.Targets, "targets-life", life.Targets, "how long versions are valid")
	flags.DurationVar(&r.Life.Snapshot, "snapshot-life", life.Snapshot, "how long the list of roles is valid")
	flags.DurationVar(&r.Life.Timestamp, "timestamp-life", life.Timestamp, "how long the timestamp is valid")
	if err := flags.Parse(args[1:]); err != nil {
		return exitUsage
	}
	*version = strings.TrimPrefix(*version, "v")
	err := errors.New("-repo and -keys are needed")
	switch ready := r.Dir != "" && r.Keys != ""; {
	case args[0] == "key":
		err = keys(flags.Args())
	case !ready:
	case args[0] == "init":
		err = r.Init()
	case args[0] == "add":
		var list map[string]string
		if list, err = programList(flags.Args(), *programs); err == nil {
			err = r.Add(*channel, *version, list)
		}
	case args[0] == "remove":
		err = r.Remove(*channel, *version)
	case args[0] == "refresh":
		err = r.Refresh()
	case args[0] == "rotate":
		err = r.Rotate(*old)
	default:
		err = fmt.Errorf("unknown command %s", args[0])
	}
	if err != nil {
		fmt.Fprintln(errs, "brine-release:", err)
		return 1
	}
	return 0
}

func keys(files []string) error {
	if len(files) == 0 {
		return errors.New("cannot make a key: the name of its file is missing")
	}
	for _, f := range files {
		if err := repository.NewKey(f); err != nil {
			return err
		}
	}
	return nil
}

// programList returns the programs by platform: those on the command line and those in a directory.
func programList(named []string, dir string) (map[string]string, error) {
	list := map[string]string{}
	for _, arg := range named {
		platform, file, ok := strings.Cut(arg, "=")
		if !ok {
			return nil, fmt.Errorf("%q is not PLATFORM=FILE", arg)
		}
		list[platform] = file
	}
	if dir == "" {
		return list, nil
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "brine-minion*"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("there are no programs in %s", dir)
	}
	for _, f := range files {
		list[filepath.Base(filepath.Dir(f))] = f
	}
	return list, nil
}
