package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// licenseNotices returns the complete licences and notices of brine, of Go and of every module that is linked into a
// program. A module without a licence is an error. The program is a package of the module in dir.
func licenseNotices(dir, program string) (string, error) {
	modules := map[string]string{} // directories by path and version
	for _, a := range arches {
		cmd := exec.Command("go", "list", "-deps", "-json=Module", program)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+a.goarch)
		out, err := cmd.Output()
		if err != nil {
			return "", fmt.Errorf("cannot list the modules of %s: %w", program, err)
		}
		for dec := json.NewDecoder(bytes.NewReader(out)); ; {
			var p struct {
				Module *struct {
					Path, Version, Dir string

					Main bool
				}
			}
			if err := dec.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return "", err
			}
			if p.Module != nil && !p.Module.Main && p.Module.Path != "github.com/brine-salt/brine" {
				modules[p.Module.Path+" "+p.Module.Version] = p.Module.Dir
			}
		}
	}
	var b strings.Builder
	b.WriteString("The programs of this package contain the following software.\n")
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("cannot find Go's licence: %w", err)
	}
	list := []string{"brine", "Go " + strings.TrimPrefix(runtime.Version(), "go")}
	dirs := map[string]string{list[0]: ".", list[1]: strings.TrimSpace(string(goroot))}
	for m, dir := range modules {
		list, dirs[m] = append(list, m), dir
	}
	slices.Sort(list[2:])
	for _, m := range list {
		files, err := licenceFiles(dirs[m])
		if err != nil {
			return "", fmt.Errorf("cannot read the licence of %s: %w", m, err)
		}
		fmt.Fprintf(&b, "\n%s\n%s\n", strings.Repeat("=", 80), m)
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(&b, "\n%s\n",
				strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n")))
		}
	}
	return b.String(), nil
}

// licenceFiles returns the files in a module's directory that contain its licence and notices.
func licenceFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []string
	licence := false
	for _, e := range entries {
		name := strings.ToUpper(e.Name())
		isLicence := strings.HasPrefix(name, "LICEN") || strings.HasPrefix(name, "COPYING") ||
			strings.HasPrefix(name, "UNLICENSE")
		if e.Type().IsRegular() &&
			(isLicence || strings.HasPrefix(name, "NOTICE") ||
				strings.HasPrefix(name, "PATENTS")) && !strings.HasSuffix(name, ".GO") {
			licence = licence || isLicence
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	if !licence {
		return nil, fmt.Errorf("there is none in %s", dir)
	}
	return files, nil
}

// copyright is the text about licences in Debian's packages. NOTICES contains the licences of all linked modules.
const copyright = `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: brine
Source: https://github.com/brine-salt/brine

Files: *
Copyright: 2025-2026 The brine authors
License: Apache-2.0
 On Debian systems the text of the licence is in /usr/share/common-licenses/Apache-2.0.
 .
 The programs are linked from further modules; the file NOTICES.gz beside this one has the licences of all of them, whole.
`
