import { render } from 'preact'
import '../style/base.css'
import '../style/panel.css'
import './admin.css'
import { applyTheme } from '../view/theme'
import { Owner } from './owner'
import { begin } from './state'

applyTheme()
render(<Owner />, document.getElementById('app')!)
begin()
