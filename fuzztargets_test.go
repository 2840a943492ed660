package brine_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// parserTargets has, for each function that reads bytes of a peer that has not signed in, the fuzz target that reaches it. Both are
// "directory name"; the peer may stand in a minion's place or in the master's.
func parserTargets() map[string][]string {
	const (
		proto = "protocol "
		crypt = "protocol/crypt "
		pay   = "protocol/payload "
		tcp   = "protocol/transport/tcp "
		zmq   = "protocol/transport/zeromq "
		ws    = "protocol/transport/ws "
		body  = "master/restapi/internal/bodyfuzz "
		exch  = "master/restapi/internal/exchange "
		join  = "master/join "
	)
	return map[string][]string{
		proto + "FuzzEnvelope":    {proto + "ParseEnvelope", proto + "parseVersion", proto + "OpenRequest", proto + "OpenRequestWith", proto + "OpenPublish", proto + "OpenPresence"},
		proto + "FuzzAuthRequest": {proto + "ParseAuthRequest"},
		proto + "FuzzJoinProof":   {proto + "readProof"},
		proto + "FuzzAuthReply":   {proto + "readAccepted"},
		proto + "FuzzJob":         {proto + "ParseJob", proto + "ParseArgs", proto + "SplitKwarg", proto + "parseFunctions", proto + "parseArguments"},
		proto + "FuzzReturn":      {proto + "ParseReturn"},
		proto + "FuzzPillar":      {proto + "OpenPillar", proto + "OpenPillarOrdered"},
		proto + "FuzzReply":       {proto + "OpenReply", proto + "OpenReplyRaw", proto + "OpenReplyOrdered", proto + "openSealed"},
		crypt + "FuzzOpen":        {crypt + "Open", crypt + "OpenInPlace", crypt + "openMessage"},
		crypt + "FuzzPEM":         {crypt + "ParsePublicKey", crypt + "ParsePrivateKey", crypt + "ParseKey"},
		pay + "FuzzUnmarshal": {pay + "Unmarshal", pay + "UnmarshalLimits", pay + "UnmarshalShared", pay + "UnmarshalRaw", pay + "UnmarshalOrdered",
			pay + "decodeAll", pay + "decodeOne", pay + "open"},
		tcp + "FuzzFrames": {tcp + "readFrame", tcp + "readReplies"},
		zmq + "FuzzConn":   {zmq + "readMessage", zmq + "readFrame", zmq + "readBody", zmq + "readFull", zmq + "readReplies", zmq + "splitRoute"},
		ws + "FuzzConn":    {},
		"master/internal/requestfuzz FuzzRequests": {},
		"master/announced FuzzToken":               {},
		join + "FuzzDocuments":                     {join + "parseMoment", join + "decodeObject", join + "Open"},
		"master/vendordata FuzzRead":               {"master/vendordata read"},
		body + "FuzzBodies":                        {"master/restapi readBody", "master/restapi/internal/native ReadParts", exch + "Decode", exch + "decodeForm"},
		body + "FuzzHeads":                         {exch + "Negotiate"},
	}
}

// TestParsersAreFuzzed: each parser that a peer reaches before it has signed in has a fuzz target, which is there, and none is missing
// in the list.
func TestParsersAreFuzzed(t *testing.T) {
	// What only reads what others have made: files of the host, and messages that were read by a parser before.
	others := []string{"protocol/crypt readKeyFile", "protocol/payload UnmarshalDisk", "protocol/payload UnmarshalDiskOrdered", "master/restapi openAPI"}
	dirs := []string{"protocol", "protocol/crypt", "protocol/payload", "protocol/transport", "protocol/transport/internal/serve", "protocol/transport/tcp",
		"protocol/transport/ws", "protocol/transport/zeromq", "master/join", "master/requests/door", "master/requests/signin", "master/restapi",
		"master/restapi/internal/exchange", "master/restapi/internal/native", "master/vendordata"}
	parsing := regexp.MustCompile(`^([Pp]arse|[Rr]ead|[Oo]pen|[Uu]nmarshal|[Dd]ecode|[Ss]plit|[Nn]egotiate)([A-Z]|$)`)
	var listed []string
	for target, functions := range parserTargets() {
		dir, name, _ := strings.Cut(target, " ")
		if !slices.Contains(functionsOf(t, dir, true), name) {
			t.Errorf("there is no fuzz target %s", target)
		}
		listed = append(listed, functions...)
	}
	found := map[string]bool{}
	for _, dir := range dirs {
		for _, name := range functionsOf(t, dir, false) {
			of := dir + " " + name
			if !parsing.MatchString(name) || name == "Read" || name == "ReadByte" {
				continue
			}
			if found[of] = true; !slices.Contains(listed, of) && !slices.Contains(others, of) {
				t.Errorf("%s has no fuzz target", of)
			}
		}
	}
	for _, of := range slices.Concat(listed, others) {
		if !found[of] {
			t.Errorf("there is no %s", of)
		}
	}
}

// TestFuzzShortHasAllModules: make fuzz-short runs the targets of every module in the tree.
func TestFuzzShortHasAllModules(t *testing.T) {
	b, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^FUZZMODULES := (.*)$`).FindSubmatch(b)
	if line == nil {
		t.Fatal("the Makefile does not say which modules have targets")
	}
	modules := map[string]bool{} // by directory: whether the Makefile has it
	for _, dir := range strings.Fields(string(line[1])) {
		modules[dir] = true
	}
	targets := map[string]bool{}
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		src, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(src, []byte("\nfunc Fuzz")) {
			return err
		}
		dir := filepath.Dir(path)
		for ; dir != "."; dir = filepath.Dir(dir) {
			if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
				break
			}
		}
		if targets[dir] = true; !modules[dir] {
			t.Errorf("%s is in the module %s, which make fuzz-short does not run", path, dir)
		}
		return nil
	})
	if err != nil || len(targets) != len(modules) {
		t.Errorf("targets in %v, make fuzz-short runs %v; %v", targets, modules, err)
	}
}

// functionsOf returns the names of a package's functions and methods, or those of its tests.
func functionsOf(t *testing.T, dir string, tests bool) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatal(dir, err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") != tests {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fun, ok := d.(*ast.FuncDecl); ok {
				names = append(names, fun.Name.Name)
			}
		}
	}
	return names
}
