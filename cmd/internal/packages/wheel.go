package main

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// wheelPlatforms are the platforms of wheels by our names of architectures. The program in a wheel is static, so that
// it runs with every C library.
var wheelPlatforms = map[string]string{"amd64": "x86_64", "arm64": "aarch64", "arm7": "armv7l"}

// pythonVersion converts a version to the form of Python's packages (PEP 440): 1.2.3-rc.1 becomes 1.2.3rc1. A
// pre-release that PEP 440 does not support becomes a development release.
func pythonVersion(release string) string {
	version, pre, ok := strings.Cut(release, "-")
	if !ok {
		return version
	}
	kind, number, _ := strings.Cut(pre, ".")
	if number == "" || strings.Trim(number, "0123456789") != "" {
		number = "0"
	}
	switch kind {
	case "alpha", "beta":
		return version + kind[:1] + number
	case "rc":
		return version + kind + number
	}
	return version + ".dev" + number
}

// pythonMetadata returns the file METADATA of the Python package brine-openstack.
func pythonMetadata(release string) string {
	return "Metadata-Version: 2.1\nName: brine-openstack\nVersion: " + pythonVersion(release) +
		"\nSummary: OpenStack services as Salt masters: the sidecar, its client, and plugins for Heat, Trove and Sahara\n" +
		"Home-page: https://github.com/brine-salt/brine\nLicense: Apache-2.0\nRequires-Python: >=3.9\n"
}

// pythonEntryPoints returns the file entry_points.txt of that package, through which Sahara finds its driver. The
// entries come from pyproject.toml.
func pythonEntryPoints() (string, error) {
	const project = "openstack/python/pyproject.toml"
	b, err := os.ReadFile(project)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	inside := false
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			group, ok := strings.CutPrefix(line, `[project.entry-points."`)
			if inside = ok; ok {
				fmt.Fprintf(&out, "[%s]\n", strings.TrimSuffix(group, `"]`))
			}
		} else if name, place, ok := strings.Cut(line, " = "); inside && ok {
			fmt.Fprintf(&out, "%s = %s\n", name, strings.Trim(place, `"`))
		}
	}
	if out.Len() == 0 {
		return "", fmt.Errorf("%s names no entry points", project)
	}
	return out.String(), nil
}

// writeWheel writes the wheel of the Python package brine-openstack, which contains the sidecar's program (PEP 427).
// The same files result in the same wheel.
func writeWheel(out, program, work string, a arch, release string, epoch int64) error {
	version := pythonVersion(release)
	info := "brine_openstack-" + version + ".dist-info/"
	machine := wheelPlatforms[a.name]
	var tags []string
	for _, p := range []string{"manylinux2014", "manylinux_2_17", "musllinux_1_1"} {
		tags = append(tags, p+"_"+machine)
	}
	text := "Wheel-Version: 1.0\nGenerator: brine (" + release + ")\nRoot-Is-Purelib: false\n"
	for _, t := range tags {
		text += "Tag: py3-none-" + t + "\n"
	}
	entryPoints, err := pythonEntryPoints()
	if err != nil {
		return err
	}
	type file struct{ name, from, text string }
	files := []file{}
	const source = "openstack/python/"
	err = filepath.WalkDir(source+"brine_openstack", func(name string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.HasSuffix(name, ".py") {
			files = append(files, file{name: strings.TrimPrefix(filepath.ToSlash(name), source), from: name})
		}
		return err
	})
	if err != nil {
		return err
	}
	files = append(files, file{name: "brine_openstack/bin/brine-master", from: program},
		file{name: info + "METADATA", text: pythonMetadata(release)},
		file{name: info + "entry_points.txt", text: entryPoints},
		file{name: info + "NOTICES", from: filepath.Join(work, "master", "NOTICES")},
		file{name: info + "WHEEL", text: text})
	f, err := os.Create(filepath.Join(out, fmt.Sprintf("brine_openstack-%s-py3-none-%s.whl", version, strings.Join(tags, "."))))
	if err != nil {
		return err
	}
	defer f.Close()
	w := zip.NewWriter(f)
	var record strings.Builder
	add := func(name string, content []byte, mode os.FileMode) error {
		h := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: time.Unix(epoch, 0).UTC()}
		h.SetMode(mode)
		m, err := w.CreateHeader(h)
		if err == nil {
			_, err = m.Write(content)
		}
		return err
	}
	for _, m := range files {
		content, mode := []byte(m.text), os.FileMode(0o644)
		if m.from != "" {
			if content, err = os.ReadFile(m.from); err != nil {
				return err
			}
		}
		if m.from == program {
			mode = 0o755
		}
		if err := add(m.name, content, mode); err != nil {
			return err
		}
		sum := sha256.Sum256(content)
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", m.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(content))
	}
	record.WriteString(info + "RECORD,,\n")
	if err := add(info+"RECORD", []byte(record.String()), 0o644); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return f.Close()
}
