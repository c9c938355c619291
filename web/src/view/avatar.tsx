/**
 * Avatar is the built-in avatar, a face that thinks, speaks, and listens. level is the loudness of
 * the user's voice, 0 to 1.
 */
export function Avatar({ state, level = 0 }: { state: string; level?: number }) {
  return (
    <svg class={`avatar avatar-${state}`} viewBox="0 0 64 64" aria-hidden="true" focusable="false">
      <circle class="avatar-ring" cx="32" cy="32" r={26 + 5 * level} />
      <circle class="avatar-disc" cx="32" cy="32" r="26" />
      <ellipse class="avatar-eye" cx="23.500" cy="29" rx="3" ry="4" />
      <ellipse class="avatar-eye" cx="40.500" cy="29" rx="3" ry="4" />
      <path class="avatar-mouth" d="M24 41q8 6 16 0" />
      <ellipse class="avatar-open" cx="32" cy="43" rx="5" ry="3.500" />
    </svg>
  )
}
