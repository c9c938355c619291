package apiproxy

import (
	"crypto/sha256"
	"encoding/base64"
	"html/template"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
)

// loginWords are the texts of the login page.
type loginWords struct {
	Lang, Title, Text, Name, Password, Submit, In, Logout string
	Wrong, Later, Trouble                                 string
}

var english = loginWords{Lang: "en", Title: "Log in", Text: "Log in to the API of this Hermes Agent.", Name: "Username", Password: "Password", Submit: "Log in",
	In: "You're logged in as %s. You can close this page and go back to your app.", Logout: "Log out",
	Wrong: "The username or password is wrong.", Later: "Too many login attempts. Wait a moment and try again.", Trouble: "The server can't check your login now. Try again shortly."}

var russian = loginWords{Lang: "ru", Title: "Вход", Text: "Войдите в API этого агента Hermes.", Name: "Имя пользователя", Password: "Пароль", Submit: "Войти",
	In: "Вы вошли как %s. Можно закрыть эту страницу и вернуться в приложение.", Logout: "Выйти",
	Wrong: "Неверное имя пользователя или пароль.", Later: "Слишком много попыток входа. Подождите немного и попробуйте снова.", Trouble: "Сервер сейчас не может проверить вход. Попробуйте чуть позже."}

// wordsFor chooses the language that a browser prefers.
func wordsFor(r *http.Request) loginWords {
	first, _, _ := strings.Cut(r.Header.Get("Accept-Language"), ",")
	if lang, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(first)), "-"); lang == "ru" {
		return russian
	}
	return english
}

const loginStyle = `:root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}body{max-width:22rem;margin:15vh auto;padding:0 1rem}` +
	`label{display:block;margin:.75rem 0}input,button{box-sizing:border-box;width:100%;font:inherit;padding:.6rem;min-height:2.75rem}[role=alert]{color:light-dark(#b00020,#ff8a80)}`

var loginTemplate = template.Must(template.New("login").Parse(`<!doctype html>
<html lang="{{.Words.Lang}}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>{{.Words.Title}}</title><style>{{.Style}}</style></head><body><main><h1>{{.Words.Title}}</h1>
{{if .In}}<p>{{.In}}</p><form method="post" action="/auth/logout"><button>{{.Words.Logout}}</button></form>
{{else}}<p>{{.Words.Text}}</p>{{with .Fault}}<p role="alert">{{.}}</p>{{end}}
<form method="post" action="/login"><input type="hidden" name="next" value="{{.Next}}">
<label>{{.Words.Name}}<input name="username" value="{{.Name}}" autocomplete="username" autocapitalize="none" spellcheck="false" required></label>
<label>{{.Words.Password}}<input name="password" type="password" autocomplete="current-password" required></label>
<button>{{.Words.Submit}}</button></form>{{end}}</main></body></html>
`))

// loginPolicy allows the page its style, and a form to this server.
var loginPolicy = func() string {
	sum := sha256.Sum256([]byte(loginStyle))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
}()

// loginView is the content of the login page.
type loginView struct {
	Words                 loginWords
	Style                 template.CSS
	In, Fault, Name, Next string
}

func (v loginView) write(w http.ResponseWriter, status int) {
	v.Style = loginStyle
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", loginPolicy)
	h.Set("Referrer-Policy", "same-origin") // with no-referrer a browser sends the form with the origin null
	w.WriteHeader(status)
	_ = loginTemplate.Execute(w, v)
}

// loginPage serves GET /login, which login_url names: a form for browsers, or a line of text for
// other programs.
func (l *logins) loginPage(w http.ResponseWriter, r *http.Request) {
	if !strings.Contains(r.Header.Get("Accept"), "text/html") {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, "This is the API of a Hermes Agent. Apps log in with POST /auth/password-login, or send an API key as a bearer token.\n")
		return
	}
	v := loginView{Words: wordsFor(r), Next: r.URL.Query().Get("next")}
	if c, err := l.identify(w, r); err == nil {
		v.In = strings.Replace(v.Words.In, "%s", c.name, 1)
	}
	v.write(w, http.StatusOK)
}

// loginForm serves POST /login, the form of the page.
func (l *logins) loginForm(w http.ResponseWriter, r *http.Request) {
	if !l.sameSite(r) {
		http.Error(w, "Pages of another origin may not log in here.", http.StatusForbidden)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxLogin))
	if err != nil {
		http.Error(w, "The request is too large.", http.StatusRequestEntityTooLarge)
		return
	}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	in, err := url.ParseQuery(string(body))
	if err != nil || kind != "application/x-www-form-urlencoded" {
		http.Error(w, "Send the form as application/x-www-form-urlencoded.", http.StatusUnsupportedMediaType)
		return
	}
	next := in.Get("next")
	no := l.signIn(w, r, in.Get("username"), in.Get("password"))
	if no == nil {
		if next == "" {
			next = loginPath
		}
		http.Redirect(w, r, localPath(next), http.StatusSeeOther)
		return
	}
	v := loginView{Words: wordsFor(r), Name: in.Get("username"), Next: next}
	switch no.status {
	case http.StatusUnauthorized:
		v.Fault = v.Words.Wrong
	case http.StatusTooManyRequests:
		v.Fault = v.Words.Later
	default:
		v.Fault = v.Words.Trouble
	}
	no.head(w)
	v.write(w, no.status)
}
