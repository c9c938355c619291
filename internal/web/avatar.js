// Stands before the scripts of an avatar page. It carries messages of the page around the frame to window.hermesAvatar, which that page
// cannot reach itself. A page that hears messages by itself and defines no window.hermesAvatar is left alone.
(() => {
  const calls = ['setState', 'speak', 'setVolume']
  const host = window.parent
  let avatar
  const greet = () => {
    if (window.hermesAvatar && document.readyState !== 'loading') host.postMessage({ hermesAvatar: 'ready' }, '*')
  }
  // The rest of the script that sets it, and of the page, runs before the first call.
  const later = () => setTimeout(greet)
  Object.defineProperty(window, 'hermesAvatar', {
    configurable: true,
    enumerable: true,
    get: () => avatar,
    set: (value) => {
      avatar = value
      later()
    },
  })
  document.addEventListener('DOMContentLoaded', later)
  window.addEventListener('load', later)
  window.addEventListener('message', (event) => {
    if (event.source !== host || typeof event.data !== 'object' || event.data === null) return
    const { hermesAvatar: call, value } = event.data
    if (call === 'hello') return greet()
    const page = window.hermesAvatar
    if (!calls.includes(call) || typeof page?.[call] !== 'function') return
    event.stopImmediatePropagation() // the page may listen, too: once is enough
    page[call](value)
  })
})()
