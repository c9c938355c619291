import { render } from 'preact'
import '../style/base.css'
import '../style/panel.css'
import './admin.css'
import { applyTheme } from '../view/theme'
import { AdminApp } from './app'
import './messages'
import { start } from './state'

applyTheme()
render(<AdminApp />, document.getElementById('app')!)
start()
