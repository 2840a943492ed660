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

// TestLimitsPage: the numbers in the tables of docs/limits.md that begin with "resource" are the ones in the code.
func TestLimitsPage(t *testing.T) {
	rows := limitRows()
	b, err := os.ReadFile("docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("all of a /%v counts as one address", value(t, "protocol/peernet IPv6Bits")); !strings.Contains(string(b), want) {
		t.Errorf("the page does not say %q", want)
	}
	number := regexp.MustCompile(`\b(1/)?([\d,]*\d)\b(?: (KiB|MiB|s|minutes|h)\b)?`)
	units := map[string]int64{"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "s": 1e9, "minutes": 60e9, "h": 3600e9}
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

// limitRows has, for each row of docs/limits.md in the order of its numbers, the directory and name of a constant; a number in place of
// one stands for itself.
func limitRows() map[string][]string {
	const (
		proto   = "protocol "
		tcp     = "protocol/transport/tcp "
		ws      = "protocol/transport/ws "
		ten     = "master/tenants "
		reqs    = "master/requests "
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
		exch    = "master/restapi/internal/exchange "
		vendor  = "master/vendordata "
		limiter = "master/internal/ratelimit "
		run     = "internal/modkit/runcmd "
	)
	return map[string][]string{
		"connections, both ports":                {serve + "reservePart", serve + "minReserve", serve + "maxReserve", serve + "httpPart", serve + "maxHTTP", serve + "ownTurn"},
		"a request connection without a request": {serve + "silentRequests"},
		"a handshake":                            {trans + "DefaultHandshakeTimeout", zeromq + "maxHandshake", trans + "DefaultMaxHandshakes", trans + "DefaultMaxHandshakes", serve + "handshakeGrace"},
		"messages up to 4 KiB":                   {trans + "FreeMessage", "1"},
		"messages up to 64 KiB":                  {trans + "SmallMessage", "1", serve + "smallBudget", serve + "smallGrace"},
		"larger messages":                        {"1", trans + "DefaultMaxMessage", trans + "DefaultMaxUnauthenticated", serve + "budgetGrace"},
		"a message that stalls":                  {trans + "DefaultReadTimeout"},
		"ZeroMQ PINGs":                           {zeromq + "maxPings", zeromq + "pingWindow"},
		"contents of a request in the clear":     {door + "clearBytes", door + "clearElements", door + "outerDepth", door + "localBytes"},
		"sign-ins":                               {mas + "defaultAuthRate", mas + "defaultAuthBurst", desk + "authAtOnce", desk + "knownBurst"},
		"sign-ins without an accepted key":       {subs + "newcomerRate", subs + "newcomerBurst", subs + "newcomersOfOne", subs + "newcomerPlaces", subs + "newcomerPart", subs + "newcomersWaiting"},
		"messages before a sign-in, apart from its signatures": {serve + "priceFactor", serve + "maxDebt", serve + "maxDebt"},
		"handshakes": {serve + "priceFactor", serve + "handshakeCredit", "1800", serve + "handshakeQueue"},
		"identification probes without an answer":                  {subs + "unansweredRate", subs + "unansweredBurst", subs + "unknownRate", subs + "unknownBurst", serve + "minionTime"},
		"unidentified subscribers, at an address without a minion": {serve + "unknownShare", serve + "withheldTime"},
		"pending keys":                      {"master/keys defaultPending", "master/keys pendingStale"},
		"failed log-ins of local tools":     {tools + "localRate", tools + "localBurst", limiter + "sourceShare"},
		"denied calls in the audit log":     {aud + "deniedRate", aud + "deniedBurst", aud + "auditLine", aud + "deniedAll", aud + "deniedAllBurst"},
		"refused calls in the ordinary log": {tools + "refusalRate", tools + "refusalBurst"},
		"HTTP connections":                  {"cmd/brine-master addressPart", "cmd/brine-master maxConnections", "cmd/brine-master descriptorPart"},
		"handshakes of HTTPS":               {"master/internal/handshakes Rate", "master/internal/handshakes Burst", "master/internal/handshakes Queue"},
		"an HTTP request":                   {rest + "headTime", rest + "maxHead", "master/restapi/internal/exchange maxAccept", rest + "requestTime", rest + "idleTime"},
		"values that the aliases of a YAML body, or of all `arg` and `kwarg` of a form, stand for": {"internal/python/yaml MaxAliased", "400"},
		"HTTP bodies beyond 64 KiB without a token":                                                {rest + "smallBody", rest + "defaultBody", rest + "bodyRate", rest + "bodyBurst", rest + "refusedBody", rest + "loginBody", exch + "yamlPrice", exch + "aliasPrice", rest + "defaultStrangers", "413", "429", "503"},
		"HTTP answers":        {listen + "writePiece", listen + "WriteTimeout"},
		"failed HTTP log-ins": {rest + "defaultLoginRate", rest + "defaultLoginBurst", limiter + "sourceShare", "429"},
		"vendordata requests": {vendor + "defaultRate", vendor + "defaultBurst", vendor + "defaultFailureRate", vendor + "defaultFailureBurst", vendor + "maxBody",
			vendor + "defaultCheckTime", vendor + "defaultChecks", "429", "503"},
		"memory": {"internal/daemon headroomPart", "internal/daemon minHeadroom"},
		"rows of an answer of MySQL; size of a part of a published log (`logpub.publish`)": {"modules/mysql maxRows", "modules/logpub maxPart"},
		"line of a published log that stays in one part (`logpub.publish`, Trove's logs)":  {"internal/modkit/logpub maxLine"},
		"time for which `fs.freeze` keeps a file system frozen":                            {"modules/fs maxTimeout", "modules/fs defaultTimeout"},
		"output of a program that is kept":                                                 {run + "DefaultLimit", run + "DefaultTotal", run + "limitPart", run + "totalPart", run + "MinLimit"},
		"jobs at once":                                                                     {"minion defaultRunning", run + "placeDescriptors", run + "keptDescriptors"},
		"texts and lists that one rendering makes":                                         {"states/render/jinja MaxMade", "states/render/jinja MaxText"},
		"one search of a regular expression that backtracks":                               {"internal/python/pyre Timeout"},
		"ZeroMQ commands, messages and subscriptions":                                      {zeromq + "maxCommand", zeromq + "maxFrames", zeromq + "maxTopics", zeromq + "maxTopic"},
		"TCP frames":                            {tcp + "maxHead", tcp + "maxFields", tcp + "maxDepth", tcp + "maxRunning"},
		"presence messages of a TCP subscriber": {tcp + "maxPresence", tcp + "maxPresences"},
		"bytes on a WebSocket besides messages (heads of frames, pings)":           {ws + "maxOverhead", ws + "overheadWindow", ws + "overheadPart"},
		"the upgrade to a WebSocket":                                               {ws + "maxUpgrade"},
		"messages that a subscriber has not taken":                                 {trans + "DefaultPubHWM", trans + "DefaultPubBytes", trans + "DefaultWriteTimeout"},
		"messages for connections that have not subscribed yet":                    {serve + "maxKept", serve + "maxKeptBytes", serve + "arrivalTime"},
		"connections that have lost their slot, with a request under way":          {serve + "lostPart", serve + "minLost"},
		"recorded requests of a minion, sent again":                                {door + "maxRepeats"},
		"sealed requests from 4 KiB on":                                            {door + "largeRequest", door + "largeBytes"},
		"keys of other tenants, tried for a request that does not name its minion": {ten + "triesRate", ten + "triesBurst", ten + "maxGuessable"},
		"contents of a sign-in":                                                    {proto + "maxID", proto + "maxPubText", "protocol/crypt MaxBits", proto + "maxToken"},
		"proofs in a sign-in":                                                      {proto + "maxJoin", proto + "maxCerts", proto + "maxCertSize", proto + "maxDoc"},
		"grains of a sign-in in its event":                                         {desk + "maxEventGrains"},
		"commands of an HTTP request":                                              {"master/restapi/internal/exchange maxChunks", "400"},
		"contents of a vendordata request":                                         {vendor + "maxToken", vendor + "maxEntries", vendor + "maxValue", vendor + "maxKept"},
		"addresses that are remembered":                                            {limiter + "maxSources", serve + "maxPaid", serve + "maxAddresses"},
		"announced minions":                                                        {"master/announced DefaultMaxTenant", "master/announced maxGrains", "master/announced grainsShare"},
		"key pairs that are made for announced minions":                            {"1"},
		"what open orders carry":                                                   {"master/orders/content defaultTotal", "503"},
		"HTTP bodies beyond 64 KiB, and uploads":                                   {rest + "smallBody", rest + "ownBody", rest + "ownBytes", "503"},
		"event streams":                                                            {rest + "defaultStreams", "503"},
		"open deliveries of orders":                                                {mas + "DefaultMaxUnfinished", "503"},
		"commands that run in the background (`runner_async`, `wheel_async`)":      {rest + "maxBackground", "503"},
		"log-ins":                                         {"master/eauth defaultTokens"},
		"granted event tags of a minion":                  {reqs + "maxGrants", reqs + "maxGrantBytes"},
		"kept events of a minion":                         {reqs + "maxKept", reqs + "maxKeptBytes"},
		"events in one message of a minion":               {reqs + "maxEvents", reqs + "maxTagBytes"},
		"returns of a minion to jobs that no master sent": {mas + "DefaultMaxUnordered"},
		"grains of minions that are indexed for targets":  {"master/cache maxColumns", "master/cache maxCells", "master/cache maxValues"},
	}
}

// TestLimitsAreListed: every number by which the code that unauthenticated peers reach limits something is on docs/limits.md, or it is
// listed here why it limits nothing that they use.
func TestLimitsAreListed(t *testing.T) {
	dirs := []string{"protocol", "protocol/crypt", "protocol/payload", "protocol/transport", "protocol/transport/internal/serve", "protocol/transport/tcp",
		"protocol/transport/ws", "protocol/transport/zeromq", "master/audit", "master/internal/ratelimit", "master/keys", "master/requests/door",
		"master/requests/signin", "master/restapi", "master/restapi/internal/exchange", "master/restapi/internal/listen", "master/subscribers", "master/tenants",
		"master/vendordata"}
	const (
		client = "of our client"
		file   = "of a file of the host's owner"
		cached = "of a cache, which is refilled"
		inside = "part of another limit"
		known  = "after the sign-in"
		store  = "of the work with a shared database"
	)
	others := map[string]string{
		"master/audit maxLine": file, "master/keys maxListBytes": file, "protocol/crypt maxPEM": file,
		"master/internal/ratelimit maxName": cached, "master/keys maxParsed": cached, "master/tenants maxHosts": cached,
		"protocol/crypt maxRecovered": cached, "protocol/transport/zeromq maxKnown": cached, "protocol/transport/zeromq maxKnownReady": cached,
		"protocol/transport/ws maxConns": client, "protocol/transport/ws maxPython": client, "protocol/transport/zeromq maxConns": client,
		"protocol/transport/zeromq maxIdle": client, "master/vendordata maxMessage": client, "master/keys maxRecords": store, "master/keys maxSwaps": store,
		"master/keys maxKeyBytes": file, "master/requests/door localElements": inside, "master/requests/signin knownRate": known,
		"master/subscribers stormRate": known, "protocol/transport maxResend": "of the kernel's repetitions",
		"protocol/transport/internal/serve maxClosing": inside, "protocol/transport/internal/serve maxDescriptors": "for a system without a limit",
		"protocol/transport/internal/serve lookAtOnce": inside,
		"protocol/payload maxDepth":                    inside, "protocol/payload DefaultElements": inside,
	}
	listed := map[string]bool{}
	for _, constants := range limitRows() {
		for _, c := range constants {
			listed[c] = true
		}
	}
	limiting := regexp.MustCompile(`^(max|Max|most|defaultAuth|DefaultMax|DefaultPub)[A-Z]|(Rate|Burst|Share|Budget|Elements|AtOnce)$`)
	found := map[string]bool{}
	for _, dir := range dirs {
		for _, name := range constantsOf(t, dir) {
			of := dir + " " + name
			if !limiting.MatchString(name) {
				continue
			}
			if found[of] = true; !listed[of] && others[of] == "" {
				t.Errorf("%s is neither on docs/limits.md nor listed here", of)
			} else if listed[of] && others[of] != "" {
				t.Errorf("%s is on docs/limits.md and listed here", of)
			}
		}
	}
	for of := range others {
		if !found[of] {
			t.Errorf("%s is listed, and there is no such constant", of)
		}
	}
}

// constantsOf returns the names of a package's constants.
func constantsOf(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatal(dir, err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if g, ok := n.(*ast.GenDecl); ok && g.Tok == token.CONST {
				for _, spec := range g.Specs {
					for _, id := range spec.(*ast.ValueSpec).Names {
						names = append(names, id.Name)
					}
				}
			}
			return true
		})
	}
	return names
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
