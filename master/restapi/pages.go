package restapi

// Pages are files served besides the interface, for a graphical user interface such as SaltGUI. They need no
// log-in.
type Pages struct {
	// App is an HTML file. It is served below AppPath, and for any path if the client accepts text/html
	// explicitly, as browsers do.
	App string
	// AppPath defaults to "/app".
	AppPath string
	// Static is a directory of files, served below StaticPath. Links that lead out of it are not followed, and
	// directories are not listed.
	Static string
	// StaticPath defaults to "/static".
	StaticPath string
	// Favicon is a file for /favicon.ico.
	Favicon string
}
