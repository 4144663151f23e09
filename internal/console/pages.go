package console

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

//go:embed templates/*.html
var templateFiles embed.FS

//go:embed assets
var assetFiles embed.FS

// pages are the templates, each with the frame around it.
type pages struct {
	byName map[string]*template.Template
}

// frame stands around every page.
type frame struct {
	Title                string
	Role, Target, Token  string
	IsReadOnly, IsWithin bool
	Sections             []section
	// Refresh is where the content of the page comes from again; empty for the answer to a form, which comes once.
	Refresh string
	// Content is of the page itself.
	Content any
}

// section is an entry of the navigation.
type section struct {
	Label, Path string
	IsCurrent   bool
}

var sections = []section{
	{Label: "Overview", Path: "/"},
	{Label: "Queues", Path: "/queues"},
	{Label: "Conversations", Path: "/conversations"},
	{Label: "Failed work", Path: "/failed"},
	{Label: "Schedules", Path: "/schedules"},
	{Label: "Delayed", Path: "/delayed"},
	{Label: "Between servers", Path: "/servers"},
	{Label: "Mail", Path: "/mail"},
	{Label: "Integration", Path: "/flow"},
	{Label: "Daemon", Path: "/daemon"},
	{Label: "Diagnosis", Path: "/diagnosis"},
	{Label: "Actions", Path: "/actions"},
}

func parsePages() (*pages, error) {
	names, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil {
		return nil, fmt.Errorf("list the templates of the console: %w", err)
	}
	made := &pages{byName: map[string]*template.Template{}}
	shared := []string{"templates/frame.html", "templates/parts.html"}
	for _, name := range names {
		base := strings.TrimSuffix(path.Base(name), ".html")
		if base == "frame" || base == "parts" {
			continue
		}
		parsed, err := template.New("frame.html").Funcs(formats).ParseFS(templateFiles, append(shared, name)...)
		if err != nil {
			return nil, fmt.Errorf("read the template %s of the console: %w", base, err)
		}
		made.byName[base] = parsed
	}
	return made, nil
}

// frame is the frame of a page of a session, which is nil before the login.
func (c *Console) frame(s *session, request *http.Request, title string) frame {
	f := frame{Title: title}
	if s == nil {
		return f
	}
	if request.Method == http.MethodGet {
		f.Refresh = request.URL.RequestURI()
	}
	f.Role, f.Target, f.Token, f.IsReadOnly, f.IsWithin = s.role, s.target, s.token, s.isReadOnly, true
	for _, one := range sections {
		one.IsCurrent = one.Path == request.URL.Path || one.Path != "/" && strings.HasPrefix(request.URL.Path, one.Path+"/")
		f.Sections = append(f.Sections, one)
	}
	return f
}

// render writes a page as a whole, or an error and nothing of the page.
func (p *pages) render(w http.ResponseWriter, status int, name string, f frame, content any) {
	f.Content = content
	var page bytes.Buffer
	if err := p.byName[name].Execute(&page, f); err != nil {
		panic(fmt.Errorf("write the page %s: %w", name, err))
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = page.WriteTo(w)
}

// assets serves scripts, styles and pictures, which are the same for everybody.
func assets() http.Handler {
	files, err := fs.Sub(assetFiles, "assets")
	if err != nil {
		panic(err) // the folder is in the program
	}
	server := http.StripPrefix("/assets/", http.FileServerFS(files))
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Cache-Control", "max-age=3600")
		server.ServeHTTP(w, request)
	})
}
