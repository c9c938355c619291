package setup

import (
	"fmt"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// values converts a tree to values that can be compared. Maps keep their order and their duplicate
// keys. The keys of a merge ("<<") come first. So the last key of a name is the effective one, as
// in Hermes.
type values struct {
	anchors map[string]ast.Node
	nodes   int // converted so far, with every alias expanded
}

// deepest is the maximum depth with every alias expanded. An alias could contain itself.
const deepest = 100

// of converts a node.
func (v *values) of(n ast.Node, depth int) (any, error) {
	if depth > deepest {
		return nil, tooMuch(rowOf(n), "circular aliases, or maps more than %d deep", deepest)
	}
	if v.nodes++; v.nodes > maxNodes {
		return nil, tooMuch(rowOf(n), "aliases that expand to more than %d keys and values", maxNodes)
	}
	switch x := n.(type) {
	case nil:
		return nil, nil
	case *ast.AnchorNode:
		v.anchors[x.Name.GetToken().Value] = x.Value
		return v.of(x.Value, depth+1)
	case *ast.AliasNode:
		target, ok := v.anchors[x.Value.GetToken().Value]
		if !ok {
			return nil, fmt.Errorf("the alias *%s has no anchor", x.Value.GetToken().Value)
		}
		return v.of(target, depth+1)
	case *ast.TagNode:
		if isMapping(x.Value) {
			return v.of(x.Value, depth+1)
		}
	case *ast.SequenceNode:
		list := []any{}
		for _, item := range x.Values {
			value, err := v.of(item, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		return list, nil
	case *ast.MappingNode, *ast.MappingValueNode:
		return v.mapping(x, depth)
	case *ast.CommentGroupNode:
		return nil, nil
	case *ast.StringNode: // the most common case
		return x.Value, nil
	}
	var out any
	err := yaml.NodeToValue(n, &out, yaml.UseOrderedMap(), yaml.AllowDuplicateMapKey())
	return out, err
}

// mapping converts a map.
func (v *values) mapping(n ast.Node, depth int) (any, error) {
	merged, own := yaml.MapSlice{}, yaml.MapSlice{}
	entries, _ := entriesOf(n)
	for _, e := range entries {
		value, err := v.of(e.Value, depth+1)
		if err != nil {
			return nil, err
		}
		if _, ok := e.Key.(*ast.MergeKeyNode); ok {
			for _, part := range parts(value) {
				merged = append(merged, part...)
			}
			continue
		}
		var key any
		switch k := e.Key.(type) {
		case *ast.MappingKeyNode:
			if key, err = v.of(k.Value, depth+1); err != nil {
				return nil, err
			}
			key = fmt.Sprint(key)
		case *ast.StringNode:
			key = k.Value
		default:
			if key, err = v.of(k, depth+1); err != nil {
				return nil, err
			}
			key = fmt.Sprint(key)
		}
		own = append(own, yaml.MapItem{Key: key, Value: value})
	}
	return append(merged, own...), nil
}

// parts returns the maps of a merge: a single map, or the maps of a list. The first one in a list
// takes precedence, so it comes last.
func parts(v any) (list []yaml.MapSlice) {
	switch x := v.(type) {
	case yaml.MapSlice:
		list = append(list, x)
	case []any:
		for i := len(x) - 1; i >= 0; i-- {
			list = append(list, parts(x[i])...)
		}
	}
	return list
}
