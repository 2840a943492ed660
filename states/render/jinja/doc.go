// Package jinja is Jinja2 3.1 on Python's values, in Go. Templates that were written for Salt must come out of it
// byte for byte as they come out of Jinja2, with the same errors on the same lines.
//
//	env := jinja.NewEnv()
//	t, err := env.Compile("hello", "", "Hello {{ name }}!")
//	out, err := t.Render(ctx, map[string]any{"name": "world"})
//
// # Stages
//
// [Env.Compile] does the first three stages once per text; a [Cache] keeps the result, which is never changed
// afterwards and so is shared by concurrent renders. [Template.Render] does the last two.
//
//	source             text with any line ends
//	   │  normalize                     CRLF and CR become LF; one LF at the end is dropped
//	   ▼
//	tokens             data, {{ }}, {% %}, names, numbers, strings, operators (lex.go, literal.go)
//	   │  lex                           white space control (-, +, trim_blocks, lstrip_blocks) and raw blocks are
//	   │                                settled here; an error becomes a token, so that the parser reports an
//	   │                                earlier error first, as Jinja2's lazy lexer does
//	   ▼
//	tree               stmt and expr nodes (ast.go, parse.go, parsetags.go, parseexpr.go)
//	   │  parser                        assignments claim a slot in the innermost scope; the uses of names are
//	   │                                collected and filters and tests are looked up
//	   ▼
//	scopes resolved    every nameExpr has its refs: (frames up, slot), the innermost first (scope.go)
//	   │  scope.refs                    after the whole text is parsed, since an assignment may follow a use
//	   ▼
//	evaluation         stmt.exec and expr.eval walk the tree with a frame (exec.go, eval.go)
//	   │  frame.slots, then Context     a name that no frame holds is looked up in the context: the template's own
//	   │                                top-level names, the variables, the globals, Jinja's own globals
//	   ▼
//	output             one strings.Builder per captured body; macros, blocks and imports run into their own
//
// # Scopes and frames
//
// A scope exists once per region of the text, a frame once per time that the region runs. Resolving a name while
// rendering costs a few pointer steps and no map look-up, which is what makes loops fast.
//
//	template ─ isolated                 frame of the main body
//	 ├─ for    ─ target, loop           a frame per loop; a frame per round if a macro inside captured it
//	 ├─ with, set block, filter block   a frame each
//	 ├─ macro, call block               a frame per call, whose parent is the frame of the definition
//	 └─ block  ─ isolated               runs with its own context, so that an inheriting template may replace it
//
// An empty slot holds the value missing. A name that one branch assigns and another does not is found further out,
// so a nameExpr has several refs.
//
// # Inheritance
//
// extends notes the parent and the output stops; when the main body ends, the parent's main body runs with the same
// context. Context.blocks holds the versions of each block, the most derived first: super() is the next in that list.
//
// # Values
//
// Lists, dicts and sets are those of package pyobj, ordered and shared as in Python. None is nil, int is int64 or
// *big.Int, tuples are [pyobj.Tuple], safe text is [pyobj.Markup], what is missing is an [*Undefined] of one of four
// classes. The methods of str, list, dict and set, the operators, str.format and the % operator follow CPython, error
// texts included, since templates print them and tests compare them.
//
// # Limits
//
// The text of a template comes from a master, its data may come from anybody. A render is bounded in every direction:
//
//	[MaxText]    64 MiB    one text, and the output of a render
//	[MaxMade]   256 MiB    texts and collections that a render creates, together
//	[MaxSteps]   50 million    rounds of all loops; the context is checked every 1,024 rounds
//	[MaxDepth]  200        calls of macros, blocks, includes and imports within each other
//	maxNesting  300        tags and expressions within each other, while parsing
//	maxRange    100,000    members of a range, as in Jinja's sandbox
//	maxItems    10 million members of one list
//	maxBits     1 Mi       bits of one integer
//	maxWidth    1 Mi       width and precision of a format
//	maxDigits   4,300      digits of an integer as text, as in CPython
//
// The sandbox is that of jinja2.sandbox: an attribute that begins with an underscore is never reached. What was
// found in it as a CVE of Salt or Jinja is marked with a guard comment and has a test of that name.
//
// # Files
//
// Each file has the name of what it holds. In the order of the stages:
//
//	jinja.go       the environment, templates, renders and their contexts
//	lex.go         text to tokens, and the delimiters; literal.go has numbers and escapes
//	parse.go       the parser's state, bodies and targets
//	parsetags.go   one function for each tag
//	parseexpr.go   one function for each level of precedence
//	ast.go         the nodes
//	scope.go       which names belong to which region, and their slots
//	exec.go        statements
//	eval.go        expressions and calls
//	runtime.go     the objects that templates meet: macros, loop, namespaces, modules, self and super
//	value.go       arguments, undefined values, and the interfaces that objects of other packages implement
//	attr.go        attributes, items and slices, with the sandbox
//	ops.go         operators and the limits on what they create; compare.go has comparisons and "in"
//	iterate.go     iteration, dict views, range
//	methods.go     methods of the built-in types; text.go and textops.go have those of str
//	format.go      str.format; percent.go has the % operator
//	filters.go     the table of filters and those on texts; filterlists.go, filternumbers.go and markup.go have others
//	tests.go       tests
//	globals.go     range, dict, namespace, cycler, joiner, lipsum
//	show.go        JSON and pprint
//	tags.go        the tags of a template, and uses.go the names in it, for tools that do not render
//	python.go      Python's functions for filters outside of this package
//
// # What is elsewhere
//
// The package knows nothing of Salt; package states/render adds its filters, tags and loader. Missing on purpose:
// trans (i18n), async, bytecode caches, template code in Python.
package jinja
