// Shims writes the files of modules/all, states/all and modules/returners/all: one for each package that registers
// modules. Each file only imports the package, under a build constraint that selects it by tags.
//
//	modules/apkpkg registers {Name: "apkpkg", Virtual: "pkg"}
//	   ──▶ modules/all/apkpkg.go    //go:build !custom || modules || modules.apkpkg || modules.pkg
//
// The names come from the declarations, so shims are not written by hand, and a test fails if one is missing. If all
// files of a package are for unix, its shim has that constraint as well.
//
// It also compresses the documentation of functions: docs.txt of a package becomes docs.txt.gz, which the package
// embeds.
//
// With -new it begins a module that stock has: its functions as stock declares them, their cases and the shim.
//
// Usage, from the root of the repository:
//
//	go run ./cmd/internal/shims [-new modules/NAME | -new states/NAME] [-salt DIRECTORY]
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	begin := flag.String("new", "", "begin the module in this folder, modules/NAME or states/NAME")
	salt := flag.String("salt", "", "Salt's source, the directory salt of an installation")
	flag.Parse()
	if err := run(".", *begin, *salt); err != nil {
		fmt.Fprintln(os.Stderr, "shims:", err)
		os.Exit(1)
	}
}

// run begins a module if begin is set, and writes all shims and docs.txt.gz below root.
func run(root, begin, salt string) error {
	if flag.NArg() > 0 {
		return fmt.Errorf("cannot use %q: the program takes flags only", flag.Args())
	}
	if begin != "" {
		if err := beginModule(root, begin, salt); err != nil {
			return err
		}
	}
	for _, w := range wings {
		files, err := w.shims(root)
		if err != nil {
			return err
		}
		if err := writeFolder(filepath.Join(root, w.all), files); err != nil {
			return err
		}
	}
	return packDocs(root)
}

// writeFolder writes files to a directory and removes all others, except all.go, which documents the package.
func writeFolder(dir string, files map[string]string) error {
	for name, text := range files {
		path := filepath.Join(dir, name)
		if old, err := os.ReadFile(path); err == nil && string(old) == text {
			continue
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		if files[e.Name()] == "" && e.Name() != "all.go" {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
