package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"hermes-mobile/frame"
)

// upFrames and downFrames come from the registry of the package frame, so a new frame is here, too.
var (
	upFrames   = frame.UpTypes()
	downFrames = frame.DownTypes()
)

// source holds what reflection cannot see in the package: comments, constants, and the names of all
// frame types.
type source struct {
	up, down []string
	docs     map[string]string // of a type, or of Type.Field
	consts   map[string][]constantOf
}

// constantOf is one exported constant.
type constantOf struct {
	name, value, doc string
}

func read(dir string) (*source, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	s := &source{docs: map[string]string{}, consts: map[string][]constantOf{}}
	files := token.NewFileSet()
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(files, name, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		s.declarations(file)
		switch filepath.Base(name) {
		case "codes.go", "limits.go":
			if err := s.constants(files, file); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	if len(s.up) == 0 || len(s.down) == 0 {
		return nil, fmt.Errorf("no frames in %s: %w", dir, os.ErrNotExist)
	}
	return s, s.check()
}

func (s *source) declarations(file *ast.File) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil || len(d.Recv.List) != 1 {
				continue
			}
			star, ok := d.Recv.List[0].Type.(*ast.StarExpr)
			if !ok {
				continue
			}
			switch name := star.X.(*ast.Ident).Name; d.Name.Name {
			case "up":
				s.up = append(s.up, name)
			case "down":
				s.down = append(s.down, name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if t, ok := spec.(*ast.TypeSpec); ok {
					s.typeDocs(d, t)
				}
			}
		}
	}
}

func (s *source) typeDocs(d *ast.GenDecl, t *ast.TypeSpec) {
	doc := t.Doc
	if doc == nil {
		doc = d.Doc
	}
	s.docs[t.Name.Name] = line(doc.Text())
	fields, ok := t.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, f := range fields.Fields.List {
		for _, name := range f.Names {
			s.docs[t.Name.Name+"."+name.Name] = line(f.Doc.Text() + f.Comment.Text())
		}
	}
}

// constants evaluates the exported constants of one file, by the name of their type. Untyped
// constants have the empty name.
func (s *source) constants(files *token.FileSet, file *ast.File) error {
	conf := types.Config{Importer: importer.Default(), Error: func(error) {}}
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}}
	_, _ = conf.Check("frame", files, []*ast.File{file}, info) // the file lacks names of the others, but never those of its constants
	for _, d := range file.Decls {
		gen, ok := d.(*ast.GenDecl)
		if !ok || gen.Tok != token.CONST {
			continue
		}
		for _, spec := range gen.Specs {
			v := spec.(*ast.ValueSpec)
			for _, name := range v.Names {
				c, ok := info.Defs[name].(*types.Const)
				if !ok || c.Val().Kind() == constant.Unknown {
					return fmt.Errorf("%s has no value", name.Name)
				}
				kind := ""
				if named, ok := c.Type().(*types.Named); ok {
					kind = named.Obj().Name()
				}
				doc := line(v.Doc.Text() + v.Comment.Text())
				s.consts[kind] = append(s.consts[kind], constantOf{name.Name, c.Val().ExactString(), doc})
			}
		}
	}
	return nil
}

// check reports frame types that implement Up or Down but are not in the registry.
func (s *source) check() error {
	var errs []error
	compare := func(list string, have []string, want []string) {
		for _, name := range have {
			if name != "Unknown" && !slices.Contains(want, name) {
				errs = append(errs, fmt.Errorf("frame.%s is not in %s: add it to registry.go", name, list))
			}
		}
	}
	compare("upTypes", s.up, typeNames(upFrames))
	compare("downTypes", s.down, typeNames(downFrames))
	return errors.Join(errs...)
}

func typeNames[T any](frames []T) []string {
	var names []string
	for _, f := range frames {
		names = append(names, reflect.TypeOf(f).Elem().Name())
	}
	return names
}

// line joins a comment into one line.
func line(s string) string { return strings.Join(strings.Fields(s), " ") }
