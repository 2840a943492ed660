package brine_test

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestLimitsPage: the numbers in the tables of docs/limits.md that begin with "resource" are the ones in the code. For each row, in
// the order of its numbers, the directory and name of a constant; a number in place of one stands for itself.
func TestLimitsPage(t *testing.T) {
	const (
		serve   = "protocol/transport/internal/serve "
		trans   = "protocol/transport "
		zeromq  = "protocol/transport/zeromq "
		mas     = "master "
		tools   = "master/tools "
		aud     = "master/audit "
		door    = "master/requests/door "
		desk    = "master/requests/signin "
		subs    = "master/subscribers "
		rest    = "master/restapi "
		listen  = "master/restapi/internal/listen "
		vendor  = "master/vendordata "
		limiter = "master/internal/ratelimit "
		run     = "internal/modkit/runcmd "
	)
	rows := map[string][]string{
		"connections, both ports":                {serve + "reservePart", serve + "minReserve", serve + "maxReserve", serve + "httpPart", serve + "maxHTTP", serve + "ownTurn"},
		"a request connection without a request": {serve + "silentRequests"},
		"a handshake":                            {trans + "DefaultHandshakeTimeout", zeromq + "maxHandshake", trans + "DefaultMaxHandshakes", serve + "handshakeGrace"},
		"messages up to 4 KiB":                   {trans + "FreeMessage", "1"},
		"messages up to 64 KiB":                  {trans + "SmallMessage", "1", serve + "smallBudget", serve + "smallGrace"},
		"larger messages":                        {"1", trans + "DefaultMaxMessage", trans + "DefaultMaxUnauthenticated", serve + "budgetGrace"},
		"a message that stalls":                  {trans + "DefaultReadTimeout"},
		"ZeroMQ PINGs":                           {zeromq + "maxPings", zeromq + "pingWindow"},
		"contents of a request in the clear":     {door + "clearBytes", door + "clearElements", door + "outerDepth", door + "localBytes"},
		"sign-ins":                               {mas + "defaultAuthRate", mas + "defaultAuthBurst", desk + "authAtOnce", desk + "knownBurst"},
		"sign-ins without an accepted key":       {subs + "newcomerRate", subs + "newcomerBurst", subs + "newcomersOfOne", subs + "newcomerPlaces", subs + "newcomerPart", subs + "newcomersWaiting"},
		"messages before a sign-in, apart from its signatures":     {serve + "priceFactor", serve + "maxDebt"},
		"identification probes without an answer":                  {subs + "unansweredRate", subs + "unansweredBurst", subs + "unknownRate", subs + "unknownBurst", serve + "minionTime"},
		"unidentified subscribers, at an address without a minion": {serve + "unknownShare", serve + "withheldTime"},
		"pending keys":                              {"master/keys defaultPending", "master/keys pendingStale"},
		"failed log-ins of local tools":             {tools + "localRate", tools + "localBurst", limiter + "sourceShare"},
		"denied calls in the audit log":             {aud + "deniedRate", aud + "deniedBurst", aud + "auditLine", aud + "deniedAll", aud + "deniedAllBurst"},
		"refused calls in the ordinary log":         {tools + "refusalRate", tools + "refusalBurst"},
		"HTTP connections":                          {"cmd/brine-master addressPart", "cmd/brine-master maxConnections", "cmd/brine-master descriptorPart"},
		"an HTTP request":                           {rest + "headTime", rest + "maxHead", rest + "requestTime", rest + "idleTime"},
		"HTTP bodies beyond 64 KiB without a token": {rest + "smallBody", rest + "defaultBody", rest + "bodyRate", rest + "bodyBurst", rest + "refusedBody", rest + "defaultStrangers", "413", "429", "503"},
		"HTTP answers":                              {listen + "writePiece", listen + "WriteTimeout"},
		"failed HTTP log-ins":                       {rest + "defaultLoginRate", rest + "defaultLoginBurst", limiter + "sourceShare", "429"},
		"vendordata requests": {vendor + "defaultRate", vendor + "defaultBurst", vendor + "defaultFailureRate", vendor + "defaultFailureBurst", vendor + "maxBody",
			vendor + "defaultCheckTime", vendor + "defaultChecks", "429", "503"},
		"memory":                           {"internal/daemon headroomPart", "internal/daemon minHeadroom"},
		"output of a program that is kept": {run + "DefaultLimit", run + "DefaultTotal", run + "limitPart", run + "totalPart", run + "MinLimit"},
		"jobs at once":                     {"minion defaultRunning", run + "placeDescriptors", run + "keptDescriptors"},
		"texts and lists that one rendering makes":           {"states/render/jinja MaxMade", "states/render/jinja MaxText"},
		"one search of a regular expression that backtracks": {"internal/python/pyre Timeout"},
	}
	b, err := os.ReadFile("docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("all of a /%v counts as one address", value(t, "protocol/peernet IPv6Bits")); !strings.Contains(string(b), want) {
		t.Errorf("the page does not say %q", want)
	}
	number := regexp.MustCompile(`\b(1/)?([\d,]*\d)\b(?: (KiB|MiB|s|minutes)\b)?`)
	units := map[string]int64{"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "s": 1e9, "minutes": 60e9}
	table := false
	for line := range strings.Lines(string(b)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) < 3 {
			table = false
			continue
		}
		name := strings.TrimSpace(cells[1])
		if name == "resource" || !table || strings.HasPrefix(name, "---") {
			table = table || name == "resource"
			continue
		}
		want, ok := rows[name]
		if !ok {
			t.Errorf("the test has no constants for the row %q", name)
			continue
		}
		delete(rows, name)
		found := number.FindAllStringSubmatch(line, -1)
		if len(found) != len(want) {
			t.Errorf("%s: %d numbers on the page, %d constants", name, len(found), len(want))
			continue
		}
		for i, m := range found {
			n, _ := new(big.Int).SetString(strings.ReplaceAll(m[2], ",", ""), 10)
			n.Mul(n, big.NewInt(units[m[3]]))
			if got := value(t, want[i]); got != n.String() {
				t.Errorf("%s: the page says %q, %s is %s", name, m[0], want[i], got)
			}
		}
	}
	for name := range rows {
		t.Errorf("the page has no row %q", name)
	}
}

// value returns the value of a constant, "directory name"; a duration is in nanoseconds. Other texts are returned as they are.
func value(t *testing.T, of string) string {
	t.Helper()
	dir, name, ok := strings.Cut(of, " ")
	if !ok {
		return of
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, spec := range g.Specs {
				s := spec.(*ast.ValueSpec)
				for i, id := range s.Names {
					if id.Name == name && i < len(s.Values) {
						return evaluate(t, of, s.Values[i]).ExactString()
					}
				}
			}
		}
	}
	t.Errorf("there is no constant %s", of)
	return ""
}

// evaluate returns the value of an expression of numbers and units of package time.
func evaluate(t *testing.T, of string, e ast.Expr) constant.Value {
	t.Helper()
	switch e := e.(type) {
	case *ast.BasicLit:
		return constant.MakeFromLiteral(e.Value, e.Kind, 0)
	case *ast.SelectorExpr:
		if n, ok := map[string]int64{"Millisecond": 1e6, "Second": 1e9, "Minute": 60e9, "Hour": 3600e9}[e.Sel.Name]; ok {
			return constant.MakeInt64(n)
		}
	case *ast.BinaryExpr:
		x, y := evaluate(t, of, e.X), evaluate(t, of, e.Y)
		if e.Op == token.SHL {
			n, _ := constant.Uint64Val(y)
			return constant.Shift(x, e.Op, uint(n))
		}
		return constant.BinaryOp(x, e.Op, y)
	}
	t.Fatalf("%s is more than numbers and durations: %T", of, e)
	return nil
}
